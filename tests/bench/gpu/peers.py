"""Whole requests through our engine and, in the same run, through others that are installed."""

import importlib.util
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from generation.graphs import Capture
from tests.bench.gpu.checklist import Checklist, Speed
from tests.bench.gpu.random_model import RandomGenerate
from tests.bench.gpu.sizes import Sizes
from tests.bench.gpu.speed import Speeds, prompts_of
from tests.bench.subjects import Prompt

_PATIENCE_S = 120.0  # with a peer: a check of five minutes does not wait for it for ever


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
            within(_PATIENCE_S, partial(run, warm, 4))
            started = time.perf_counter()
            within(_PATIENCE_S, partial(run, prompts, sizes.new))
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


def within(seconds: float, work: Callable[[], object]) -> None:
    """Do the work in a thread of its own.

    Raises:
        TimeoutError: it takes longer; the thread is left to itself.
        Exception: whatever the work raises.
    """
    raised: list[BaseException] = []

    def carried_out() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again, in the thread that waits
            raised.append(error)

    thread = threading.Thread(target=carried_out, name="peer", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {seconds:g} s")
    if raised:
        raise raised[0]


def _row(checks: Checklist, batch: int, name: str, seconds: float, tokens: int) -> None:
    checks.measured(Speed(f"{batch} whole requests, {name}", seconds * 1e3, tokens / seconds))
