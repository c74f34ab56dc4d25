"""The engine's steps: how long a long prompt holds others up, and where a step's time goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tests.bench.engine.bench import Bench
from tests.bench.engine.figures import percentiles
from tests.bench.workloads import random_prompts


def stalls(bench: Bench) -> dict[str, Any]:
    """W5: four streams while a prompt of 7.5k tokens arrives; the time between their tokens."""
    subject = bench.engine(speculation=False, prefix_cache=False)
    prompts = random_prompts(4, 256, seed=400)
    quiet = subject.run(prompts, 64)
    [long] = random_prompts(1, 7500, seed=401)
    busy = subject.run([*prompts, long], 64)
    subject.engine.close()
    tokens = 4 * 63
    return {
        "between tokens, s": {
            "alone": percentiles(quiet.between[:tokens]),
            "while the long prompt is read": percentiles(busy.between[:tokens]),
        },
        "first token of the long prompt, s": round(busy.first[-1], 2),
    }


def overhead(bench: Bench) -> dict[str, Any]:
    """Where a step at eight streams goes: the model's forward pass, and everything else."""
    report: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {
        "greedy": {},
        "temperature 0.7, top_p 0.9": {"temperature": 0.7, "top_p": 0.9, "seed": 1},
    }
    for name, sampling in settings.items():
        subject = bench.engine(speculation=False)
        runner = subject.engine._loop._runner
        with _timed(runner._model) as model, _timed_run(runner) as step:  # type: ignore[attr-defined]
            run = subject.run(random_prompts(8, 256, seed=500), 64, **sampling)
        subject.engine.close()
        decode = run.seconds - max(run.first)
        in_model, in_step = (sum(spent for at, spent in spans if at > max(run.first)) for spans in (model, step))
        report[name] = {
            "model": round(in_model / decode, 3),
            "drawing and packing": round((in_step - in_model) / decode, 3),
            "scheduling and streaming": round(1 - in_step / decode, 3),
        }
    return report


@contextmanager
def _timed(model: torch.nn.Module) -> Iterator[list[tuple[float, float]]]:
    """(seconds since entering, seconds spent) of each forward pass."""
    spans: list[tuple[float, float]] = []
    entered = time.perf_counter()
    begun = [0.0]

    def before(*_: object) -> None:
        begun[0] = time.perf_counter()

    def after(*_: object) -> None:
        spans.append((begun[0] - entered, time.perf_counter() - begun[0]))

    hooks = (model.register_forward_pre_hook(before), model.register_forward_hook(after))
    yield spans
    for hook in hooks:
        hook.remove()


@contextmanager
def _timed_run(runner: Any) -> Iterator[list[tuple[float, float]]]:
    """The same of each step of the runner."""
    spans: list[tuple[float, float]] = []
    entered = time.perf_counter()
    run = runner.run

    def timed(plan: Any) -> Any:
        begun = time.perf_counter()
        try:
            return run(plan)
        finally:
            spans.append((begun - entered, time.perf_counter() - begun))

    runner.run = timed
    yield spans
    runner.run = run
