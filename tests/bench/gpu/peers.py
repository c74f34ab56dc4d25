"""Whole requests through our engine and, in the same run, through others that are installed."""

import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from generation.graphs import Capture
from tests.bench.gpu.checklist import Checklist, Speed
from tests.bench.gpu.random_model import RandomGenerate
from tests.bench.gpu.sizes import Sizes
from tests.bench.gpu.speed import Speeds, prompts_of
from tests.bench.subjects import Prompt


def whole_requests(
    checks: Checklist, sizes: Sizes, speeds: Speeds, model: Any, *, make_capture: Callable[[], Capture]
) -> None:
    """Prompts of the usual length, read and answered, all sent at once: tokens that were answered a second."""
    batch = sizes.batches[1]
    prompts, warm = prompts_of(sizes, batch, seed=900), prompts_of(sizes, batch, seed=901)
    subject = speeds.engine(make_capture())
    subject.run(warm, 4)
    ours = subject.run(prompts, sizes.new)
    subject.close()
    _row(checks, batch, "Footnote", ours.seconds, sum(map(len, ours.tokens)))
    peer = RandomGenerate(model)
    peers: dict[str, Callable[[Sequence[Prompt], int], object]] = {
        "generate, one batch": peer.run,
        "transformers' continuous batching": peer.continuous,
    }
    for name, run in peers.items():
        try:
            run(warm, 4)
            started = time.perf_counter()
            run(prompts, sizes.new)
        except Exception as error:  # noqa: BLE001 - a peer that fails is no fault of ours
            checks.say(f"{name}: no figure, {type(error).__name__}: {error}")
        else:
            _row(checks, batch, name, time.perf_counter() - started, batch * sizes.new)


def vllm_requests(checks: Checklist, sizes: Sizes) -> None:
    """The same through vLLM, where it is installed, over weights that it makes up itself; not tried without one."""
    if importlib.util.find_spec("vllm") is None:
        checks.say("vLLM is not installed")
        return
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found]

    batch = sizes.batches[1]
    try:
        with tempfile.TemporaryDirectory() as folder:
            sizes.configuration().save_pretrained(folder)
            engine = LLM(
                folder,
                load_format="dummy",
                skip_tokenizer_init=True,
                dtype=str(sizes.dtype).removeprefix("torch."),
                max_model_len=sizes.window,
                enable_prefix_caching=False,
            )
            for seed, new in ((901, 4), (900, sizes.new)):
                sampling = SamplingParams(temperature=0, max_tokens=new, ignore_eos=True, detokenize=False)
                asked = [{"prompt_token_ids": list(prompt)} for prompt in prompts_of(sizes, batch, seed=seed)]
                started = time.perf_counter()
                engine.generate(asked, sampling, use_tqdm=False)
                seconds = time.perf_counter() - started
    except Exception as error:  # noqa: BLE001 - as above
        checks.say(f"vLLM: no figure, {type(error).__name__}: {error}")
    else:
        _row(checks, batch, "vLLM", seconds, batch * sizes.new)


def _row(checks: Checklist, batch: int, name: str, seconds: float, tokens: int) -> None:
    checks.measured(Speed(f"{batch} whole requests, {name}", seconds * 1e3, tokens / seconds))
