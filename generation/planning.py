"""The order of a prompt's sources, when the caller leaves it open: what the cache already holds goes first."""

from collections.abc import Callable, Sequence


def order_for_reuse(
    count: int,
    *,
    head: Sequence[int],
    render: Callable[[int, int], Sequence[int]],
    cached: Callable[[Sequence[int]], int],
    popularity: Callable[[int], float] = lambda _: 0.0,
) -> list[int]:
    """Order sources so that the prompt begins with as much as possible of what was computed before.

    Keys and values can be reused only as far as prompts agree from their first token on, and of the
    chunks that requests share few stand at the same place by themselves. A walk down the tree of
    cached prefixes takes at each place the source that is cached longest there; once none is, the
    popular ones go first, so that later requests meet them in the same order (evidence ordering, as
    in CacheWeaver, arXiv:2606.19667, and RAGBoost, arXiv:2511.03475).

    Args:
        count: Sources, 0 to `count` - 1, best first.
        head: Token ids before the first source.
        render: Token ids of a source at a place (its number may be part of them).
        cached: How many tokens of a prompt are cached from its beginning.
        popularity: How often a source is wanted.

    Returns:
        The sources in order; never one with less to reuse than in the order given.
    """
    given = list(range(count))
    prompt, left = list(head), set(given)
    order: list[int] = []
    while left:
        held = {source: cached([*prompt, *render(source, len(order))]) for source in left}
        best = min(left, key=lambda source: (-held[source], -popularity(source), source))
        if held[best] <= len(prompt):  # nothing of any of them
            order += sorted(left, key=lambda source: (-popularity(source), source))
            break
        prompt += render(best, len(order))
        order.append(best)
        left.remove(best)

    def reused(sources: Sequence[int]) -> int:
        return cached([*head, *(token for place, source in enumerate(sources) for token in render(source, place))])

    return order if reused(order) >= reused(given) else given
