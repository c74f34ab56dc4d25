"""The engine's steps: how long a long prompt holds others up, and where a step's time goes."""

import time
from typing import Any

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
        subject = bench.timed_engine(speculation=False)
        began = time.perf_counter()
        run = subject.run(random_prompts(8, 256, seed=500), 64, **sampling)
        subject.engine.close()
        decode = run.seconds - max(run.first)
        in_model, in_step = (spans.seconds(since=began + max(run.first)) for spans in (subject.model, subject.steps))
        report[name] = {
            "model": round(in_model / decode, 3),
            "drawing and packing": round((in_step - in_model) / decode, 3),
            "scheduling and streaming": round(1 - in_step / decode, 3),
        }
    return report
