"""`make gpu-check` passes with tiny models on a processor, and finds what is wrong."""

import json
import sys
import threading
import weakref
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from generation import paged_attention
from generation.draws import Draw
from generation.paged_cache import PagedCache
from tests.bench.gpu import correctness
from tests.bench.gpu.__main__ import main
from tests.bench.gpu.checklist import Checklist, Speed
from tests.bench.gpu.peers import vllm_requests, within
from tests.bench.gpu.random_model import random_model, word_tokenizer
from tests.bench.gpu.sizes import Sizes
from tests.bench.gpu.speed import Speeds, prompts_of
from tests.generation.recorder import Deaf, Recorder, Refusing

torch.set_num_threads(1)

CPU = torch.device("cpu")


def test_everything_passes_with_tiny_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tiny", "--out", str(tmp_path / "gpu.json")]) == 0

    assert capsys.readouterr().out.endswith("ALL PASSED\n")
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert not written["failed"]
    assert {"greedy tokens are those of generate", "large model: every block is back"} <= set(written["passed"])
    measured = [row["what"] for row in written["speeds"]]
    decoded = [f"decode {batch} x {name}" for batch in (1, 2, 3) for name in samplings()]
    assert set(decoded) <= set(measured)
    assert all(row["ms"] > 0 and row["tokens_s"] > 0 for row in written["speeds"])


def samplings() -> list[str]:
    return ["greedy", "greedy with citations", "temperature 0.7, top-p 0.9", "greedy, kernel by kernel"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="here there is a GPU to check")
def test_without_a_gpu_it_says_why_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1

    assert capsys.readouterr().out.startswith("torch sees no GPU. ")


def test_attention_that_forgets_distant_keys_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    attend = paged_attention._attend  # noqa: SLF001 - a fault is planted

    def forgetful(*tensors: Any, window: int | None, **rest: Any) -> Tensor:
        return attend(*tensors, window=min(window or 64, 64), **rest)

    monkeypatch.setattr(paged_attention, "_attend", forgetful)
    checks = Checklist()

    correctness.kernels(checks, CPU)

    assert len(checks.failed) == 4, "all but the one with a narrower window and the one of short rows"


def test_other_draws_than_the_references_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class LikeliestDraws:
        def __call__(self, logits: Tensor, rows: object) -> list[Draw]:
            return [Draw(int(row.argmax())) for row in logits]

    monkeypatch.setattr(correctness, "BatchedDraws", LikeliestDraws)
    checks = Checklist()

    correctness.draws(checks, CPU, vocabulary=1024)

    assert checks.failed and not checks.passed


@pytest.mark.parametrize("capture", [Refusing, Deaf])
def test_graphs_that_do_not_serve_are_found(capture: Callable[[], Refusing | Deaf]) -> None:
    checks = Checklist()

    correctness.equality(checks, CPU, make_capture=capture)

    assert checks.failed == ["small model: the capture is trusted"], "tokens stay right"


def test_tokens_and_blocks_that_are_wrong_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    deallocate = PagedCache.deallocate
    kept: list[Any] = []

    def forgetful(cache: PagedCache, owner: Any) -> None:
        if kept:
            deallocate(cache, owner)
        kept.append(owner)

    monkeypatch.setattr(PagedCache, "deallocate", forgetful)
    monkeypatch.setattr(correctness, "EACH", 19)
    checks = Checklist()

    correctness.equality(checks, CPU, make_capture=Recorder)

    assert checks.failed == ["greedy tokens are those of generate", "small model: every block is back"]


def test_a_part_that_breaks_fails_the_check_and_the_next_part_runs() -> None:
    checks = Checklist()

    checks.part("first", lambda: 1 // 0)
    checks.part("second", lambda: checks.check("this", True))

    assert (checks.failed, checks.passed) == (["first"], ["this"])
    assert checks.conclude(None) == 1


def test_to_have_checked_nothing_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    checks = Checklist()
    checks.measured(Speed("decode", ms=4.0, tokens_s=250.0, limit_ms=3.0))

    assert checks.conclude(None) == 1
    assert "0.75" in (out := capsys.readouterr().out) and "nothing was checked" in out


def test_vllm_where_it_is_installed_is_sent_the_same_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, asked = Sizes.tiny(), []
    module = ModuleType("vllm")
    module.__spec__ = ModuleSpec("vllm", None)

    class LLM:
        def __init__(self, folder: str, **options: Any) -> None:
            assert json.loads((Path(folder) / "config.json").read_text())["hidden_size"] == 64
            assert options["load_format"] == "dummy" and options["max_model_len"] == sizes.window

        def generate(self, prompts: list[dict[str, list[int]]], sampling: dict[str, Any], **_: Any) -> None:
            asked.append(([tuple(prompt["prompt_token_ids"]) for prompt in prompts], sampling["max_tokens"]))

    module.LLM, module.SamplingParams = LLM, dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    checks = Checklist()

    vllm_requests(checks, sizes)

    assert asked[-1] == (prompts_of(sizes, 2, seed=900), sizes.new) and asked[0] != asked[-1]
    assert [speed.what for speed in checks.speeds] == ["2 whole requests, vLLM"]


def test_a_peer_that_does_not_answer_is_left_to_itself() -> None:
    never = threading.Event()

    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        within(0.01, never.wait)
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0)

    never.set()


def test_an_engine_that_is_closed_leaves_its_cache_to_the_next() -> None:
    sizes = Sizes.tiny()
    model = random_model(sizes.configuration(), device=CPU, dtype=sizes.dtype)
    speeds = Speeds(Checklist(), sizes, model, word_tokenizer(1024), bandwidth=1e9, flops=1e9)
    subject = speeds.engine(Recorder())
    assert subject.run(prompts_of(sizes, 2, seed=1), 3).tokens
    cache = weakref.ref(subject.runner.cache)

    subject.close()

    assert cache() is None


def test_a_peer_that_fails_is_told_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    broken, module = Checklist(), ModuleType("vllm")
    module.__spec__ = ModuleSpec("vllm", None)
    module.LLM = module.SamplingParams = lambda *_, **__: 1 // 0  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vllm", module)

        vllm_requests(broken, Sizes.tiny())

    assert "vLLM: no figure, ZeroDivisionError" in capsys.readouterr().out
    assert not broken.failed and not broken.speeds


@pytest.mark.parametrize(("free", "layers"), [(140e9, 32), (79e9, 32), (24e9, 12), (12e9, 2)])
def test_a_model_has_the_layers_that_the_memory_holds(free: float, layers: int) -> None:
    sizes = Sizes.full(int(free))

    assert sizes.shape["num_hidden_layers"] == layers
    assert sizes.embedding_bytes + layers * sizes.layer_bytes < free
    assert 64 * (sizes.context + sizes.new) < sizes.cache_tokens


def test_a_gpu_without_room_for_a_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="more than the 6 GB that are free"):
        Sizes.full(int(6e9))


def test_eight_billion_parameters_have_the_bytes_of_llama() -> None:
    sizes = Sizes.full(int(79e9))

    with torch.device("meta"):
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_config(sizes.configuration(), dtype=sizes.dtype)

    assert sum(parameter.numel() for parameter in model.parameters()) == 8_030_261_248
    weights = sizes.layer_bytes - sizes.cache_tokens * sizes.token_bytes // 32
    assert 32 * weights + sizes.embedding_bytes == pytest.approx(2 * 8_030_261_248, rel=1e-3)
