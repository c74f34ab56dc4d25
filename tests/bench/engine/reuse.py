"""The engine beside itself without a prefix cache: what reuse and planned order save of a first token."""

from typing import Any

from generation.prefix import order_for_reuse
from tests.bench.engine.bench import Bench
from tests.bench.machine import median
from tests.bench.subjects import Footnote
from tests.bench.workloads import popular, random_prompts


def reuse(bench: Bench) -> dict[str, Any]:
    """W3: 400 chunks of 300 tokens, 6 a request, Zipf; first tokens without reuse, in rank order, planned."""
    chunks = random_prompts(400, 300, seed=300)
    head, question = random_prompts(1, 60, seed=301)[0], random_prompts(1, 30, seed=302)[0]
    requests = popular(400, 6, 36, seed=303)
    wanted = [0] * 400
    without = bench.engine(speculation=False, prefix_cache=False)
    ranked, planned = bench.engine(speculation=False), bench.engine(speculation=False)
    first: dict[str, list[float]] = {"no reuse": [], "rank order": [], "planned order": [], "asked again": []}
    cached: dict[str, int] = dict.fromkeys(first, 0)

    def ask(name: str, subject: Footnote, order: list[int]) -> None:
        prompt = (*head, *(token for chunk in order for token in chunks[chunk]), *question)
        run = subject.run([prompt], 1)
        first[name].append(run.first[0])
        cached[name] += run.cached

    for number, found in enumerate(requests):
        for chunk in found:
            wanted[chunk] += 1
        if number % 6 == 0:  # it does not change with time
            ask("no reuse", without, found)
        ask("rank order", ranked, found)
        order = order_for_reuse(
            6,
            head=head,
            render=lambda source, _, found=found: chunks[found[source]],  # type: ignore[misc]
            cached=lambda tokens: planned.engine.cached_tokens(tokens, salt=""),
            popularity=lambda source, found=found: wanted[found[source]],  # type: ignore[misc]
        )
        planned_order = [found[place] for place in order]
        ask("planned order", planned, planned_order)
        if number % 6 == 5:
            ask("asked again", planned, planned_order)
    for subject in (without, ranked, planned):
        subject.engine.close()
    warm = {name: median(times[len(times) // 2 :]) for name, times in first.items()}
    tokens = len(head) + 6 * 300 + len(question)
    return {
        "first_token_s, median of the second half": {name: round(seconds, 3) for name, seconds in warm.items()},
        "ratio to no reuse": {name: round(seconds / warm["no reuse"], 3) for name, seconds in warm.items()},
        "share of prompt tokens found": {
            name: round(cached[name] / (len(times) * tokens), 3) for name, times in first.items()
        },
    }
