"""The engine beside itself without drafts: where they pay, and what they cost where they do not."""

from typing import Any

from tests.bench.engine.bench import Bench
from tests.bench.engine.figures import against
from tests.bench.machine import median
from tests.bench.subjects import Run
from tests.bench.workloads import grounded, passages


def speculation(bench: Bench) -> dict[str, Any]:
    """W4 and W4': copying from a source, and inventing; the same engine with and without drafts.

    Beside the clock's ratio stands one of steps: how long the drafted run's steps took, by their number of
    rows, against as many steps of one row in the same run as there were tokens. It holds still on a
    machine whose speed changes from minute to minute.
    """
    subject = bench.timed_engine()
    texts = passages(bench.tokenizer, size=250)
    report: dict[str, Any] = {}
    for name, ask, sampling in (
        ("extractive", "Repeat source [2] word for word.", {}),
        ("abstractive", "Invent a story about a lighthouse keeper and a whale.", {"temperature": 1.0}),
    ):
        rates: dict[str, list[float]] = {"drafts": [], "no drafts": []}
        accepted, by_steps = 0, []
        for number in range(6):
            prompt = grounded(bench.tokenizer, texts[4 * number : 4 * number + 4], ask)
            settings: dict[str, Any] = sampling | ({"seed": number} if sampling else {})
            runs: dict[str, Run] = {}
            subject.run([prompt.ids], 1)  # both find the prompt
            for drafts in (number % 2 == 0, number % 2 == 1):
                key = "drafts" if drafts else "no drafts"
                seen = len(subject.speculator.observed)
                runs[key] = subject.run([prompt.ids], 96, sources=[prompt.sources], speculate=drafts, **settings)
                rates[key].append(runs[key].decode_rate)
                if drafts:
                    by_steps.append(_step_ratio(subject.speculator.observed[seen:], tokens=95))
            assert runs["drafts"].tokens == runs["no drafts"].tokens, "drafts changed the text"
            accepted += runs["drafts"].accepted
        report[name] = against(rates, "no drafts") | {
            "ratio by steps": round(median(by_steps), 3),
            "accepted_per_request": accepted / 6,
        }
    subject.engine.close()
    return report


def _step_ratio(steps: list[tuple[int, float]], *, tokens: int) -> float:
    """How much longer one row a step would have taken for `tokens` tokens than these (rows, seconds) did."""
    times: dict[int, list[float]] = {}
    for rows, seconds in steps:
        times.setdefault(rows, []).append(seconds)
    single = median(times.get(1) or [min(seconds for _, seconds in steps)])
    return tokens * single / sum(len(spent) * median(spent) for spent in times.values())
