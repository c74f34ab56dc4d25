"""generation.prefix orders sources to reuse cached blocks, never fewer than the given order would."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from generation.prefix import order_for_reuse

HEAD = [99]


def render(source: int, place: int) -> list[int]:
    return [100 + place, source, source]


def prompt(order: Sequence[int]) -> list[int]:
    return HEAD + [token for place, source in enumerate(order) for token in render(source, place)]


def cached_among(known: Sequence[Sequence[int]]):
    def cached(tokens: Sequence[int]) -> int:
        best = 0
        for other in map(prompt, known):
            common = 0
            while common < min(len(tokens), len(other)) and tokens[common] == other[common]:
                common += 1
            best = max(best, common)
        return best

    return cached


def test_a_prefix_seen_before_is_taken_up_again() -> None:
    order = order_for_reuse(4, head=HEAD, render=render, cached=cached_among([[2, 0]]))

    assert order == [2, 0, 1, 3]


def test_with_nothing_cached_the_popular_go_first_and_equals_keep_their_rank() -> None:
    wanted = [0, 5, 0, 5]

    order = order_for_reuse(4, head=HEAD, render=render, cached=cached_among([]), popularity=wanted.__getitem__)

    assert order == [1, 3, 0, 2]


@given(st.integers(0, 5), st.lists(st.permutations(range(5)).map(lambda order: order[:3]), max_size=6), st.randoms())
def test_any_plan_is_a_permutation_and_reuses_at_least_as_much(count: int, known: list[list[int]], chance) -> None:
    cached = cached_among(known)
    wanted = [chance.random() for _ in range(count)]

    order = order_for_reuse(count, head=HEAD, render=render, cached=cached, popularity=wanted.__getitem__)

    assert sorted(order) == list(range(count))
    assert cached(prompt(order)) >= cached(prompt(range(count)))
