"""generation.memory chooses a layout that works on the device."""

import logging
from dataclasses import replace

import pytest
import torch

from generation import memory
from generation.config import EngineConfig
from generation.memory import Pages, Slabs, memory_of, why_no_pages
from generation.weights import LoadedModel, adopt_model
from tests.generation.tiny import tiny_model

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return adopt_model(tiny_model("llama", attention="eager"), EngineConfig(model="tiny", kv_cache_bytes=1 << 20))


def test_a_cpu_gets_slabs_and_pages_when_asked(loaded: LoadedModel) -> None:
    common = {"block_tokens": 16, "prefix_cache": True, "poison": False}

    assert isinstance(memory_of(loaded, layout=None, **common), Slabs)  # type: ignore[arg-type]
    assert isinstance(memory_of(loaded, layout="pages", **common), Pages)  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.is_available(), reason="here they run")
def test_failing_kernels_are_logged_and_slabs_used_instead(
    loaded: LoadedModel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="footnote.generation"):
        assert why_no_pages(loaded) is not None

    assert "slabs are used instead" in caplog.text


def test_a_gpu_without_a_compiler_is_served_from_slabs_that_say_so(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoCompiler:
        def __init__(self, *_: object, **__: object) -> None:
            raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr(memory, "PagedBatch", type("NoBatch", (), {"build": NoCompiler}))
    monkeypatch.setattr(memory, "SlabCache", lambda **_: object())
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    meta = replace(loaded, device=torch.device("meta"))

    why = why_no_pages(meta)
    assert why == "The GPU's kernels need a C compiler once, and there is none: install gcc and libc6-dev."

    monkeypatch.setattr(memory, "why_no_pages", lambda _: why)
    served = memory_of(
        replace(loaded, device=torch.device("cuda")), layout=None, block_tokens=16, prefix_cache=True, poison=False
    )
    assert isinstance(served, Slabs) and served.why == why
