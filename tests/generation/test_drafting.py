"""generation.drafting copies what followed the longest match, and stays with the source it quotes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.drafting import SourceDrafter


def scan(tokens: list[int], ends: dict[int, int], *, min_match: int, max_match: int) -> tuple[int, int]:
    """The slow truth: (position, length) of the best earlier match of the last tokens, (-1, 0) without one."""
    best = (0, False, -1)
    for position in range(min_match, len(tokens)):
        length = 0
        while length < min(position, max_match) and tokens[position - 1 - length] == tokens[-1 - length]:
            length += 1
        if length >= min_match and ends.get(position - 1) != position:
            best = max(best, (length, position in ends, position))
    return best[2], best[0]


def replay(
    prompt: Sequence[int], sources: Sequence[tuple[int, int]], output: Sequence[int], *, min_match: int, max_match: int
) -> list[int]:
    """The slow reference: tell the whole story again, scanning everything each time. Returns the longest draft."""
    ends = {position: stop for start, stop in sources for position in range(start, stop)}
    tokens = list(prompt)
    copy, matched = scan(tokens, ends, min_match=min_match, max_match=max_match)
    broken = given_up_at = -1
    for token in output:
        right = copy >= 0 and tokens[copy] == token
        tokens.append(token)
        if right:
            copy, matched = copy + 1, matched + 1
        else:
            if copy >= 0 and matched >= 4:
                broken, given_up_at = copy, len(tokens) + 8
            copy, matched = scan(tokens, ends, min_match=min_match, max_match=max_match)
            if matched < 4 and len(tokens) <= given_up_at:
                due = [broken] if ends.get(broken) == broken + 1 else [broken, broken + 1]
                found = [p for p in due if p < len(tokens) - 1 and tokens[p] == token]
                if found:
                    copy, matched = found[0] + 1, 1
        if copy >= 0 and ends.get(copy - 1) == copy:
            copy, matched = -1, 0
    if copy < 0:
        return []
    if copy in ends:
        return tokens[copy : min(copy + 2 * matched, ends[copy])]
    draft: list[int] = []
    for offset in range(2 * matched):
        draft.append(tokens[copy + offset] if copy + offset < len(tokens) else draft[copy + offset - len(tokens)])
    return draft


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """A prompt, disjoint sources in it, and an output that partly copies it."""
    token = st.integers(0, draw(st.sampled_from([1, 3, 8])))
    prompt = draw(st.lists(token, max_size=30))
    cuts = sorted(draw(st.lists(st.integers(0, len(prompt)), max_size=4)))
    sources = [(start, stop) for start, stop in zip(cuts[::2], cuts[1::2], strict=False) if start < stop]
    output: list[int] = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(prompt)))
        output += prompt[start : start + draw(st.integers(0, 9))]
        output += draw(st.lists(token, max_size=3))
    return prompt, sources, output[:28]  # few enough that every occurrence is looked at


def follow(drafter: SourceDrafter, output: Sequence[int]) -> SourceDrafter:
    for token in output:
        drafter.push(token)
    return drafter


@settings(max_examples=400)
@given(story=stories(), min_match=st.integers(1, 4), max_match=st.integers(4, 9))
def test_drafts_are_those_of_a_slow_scan(story, min_match, max_match):
    prompt, sources, output = story
    drafter = SourceDrafter(prompt, sources=sources, min_match=min_match, max_match=max_match)
    for done in range(len(output) + 1):
        expected = replay(prompt, sources, output[:done], min_match=min_match, max_match=max_match)

        assert drafter.propose(99) == expected
        if done < len(output):
            drafter.push(output[done])


@given(story=stories(), limits=st.lists(st.integers(0, 9), min_size=28, max_size=28))
def test_a_draft_keeps_its_limit_and_asking_changes_nothing(story, limits):
    prompt, sources, output = story
    asked, silent = (SourceDrafter(prompt, sources=sources) for _ in range(2))
    for token, limit in zip(output, limits, strict=False):
        whole = asked.propose(99)

        assert asked.propose(limit) == whole[:limit]
        asked.push(token)
        silent.push(token)
    assert asked.propose(99) == silent.propose(99)


def test_the_prompts_own_tail_is_matched_before_anything_is_generated():
    assert SourceDrafter([1, 2, 3, 4, 5, 1, 2]).propose(3) == [3, 4, 5]


def test_a_longer_match_beats_a_source_and_a_later_position():
    prompt = [9, 1, 2, 30, 31, 0, 1, 2, 40, 41, 0, 1, 2, 50, 51, 0]
    drafter = SourceDrafter(prompt, sources=[(6, 10)])

    assert follow(drafter, [9, 1, 2]).propose(2) == [30, 31]


def test_a_source_beats_the_rest_of_the_prompt_and_the_latest_match_an_earlier_one():
    prompt = [1, 2, 30, 0, 1, 2, 40, 0, 1, 2, 50, 0]

    assert follow(SourceDrafter(prompt, sources=[(4, 8)]), [7, 1, 2]).propose(1) == [40]
    assert follow(SourceDrafter(prompt), [7, 1, 2]).propose(1) == [50]


def test_a_copy_stays_in_its_source_when_a_later_one_says_the_same():
    first, second = [1, 2, 3, 4, 5, 6], [0, 2, 3, 4, 8, 9]
    drafter = follow(SourceDrafter(first + second, sources=[(0, 6), (6, 12)]), [1, 2, 3, 4])

    assert drafter.propose(2) == [5, 6]


def test_a_copy_ends_with_its_source():
    prompt = [1, 2, 3, 4, 70, 71, 72]
    drafter = follow(SourceDrafter(prompt, sources=[(0, 4)]), [1, 2])

    assert drafter.propose(9) == [3, 4]
    assert follow(drafter, [3, 4]).propose(9) == []


@pytest.mark.parametrize(
    ("then", "draft"),
    [
        ([90, 91, 92, 5], [6, 7]),  # a citation marker, then on in the source
        ([99, 6], [7, 8]),  # a word replaced
        ([99, 5], [6, 7]),  # a word put in
        ([6], [7, 8]),  # a word left out
        ([90, 91], []),  # nothing of the source yet
        ([90] * 9 + [5], []),  # too long ago
    ],
)
def test_a_quotation_goes_on_after_an_interruption(then, draft):
    drafter = SourceDrafter([1, 2, 3, 4, 5, 6, 7, 8, 0], sources=[(0, 8)], min_match=3)

    assert follow(drafter, [1, 2, 3, 4, *then]).propose(2) == draft


def test_the_output_itself_is_copied_and_a_loop_is_drafted_in_full():
    drafter = follow(SourceDrafter([0]), [5, 6, 7, 5, 6, 7, 5])

    assert drafter.propose(7) == [6, 7, 5, 6, 7, 5, 6]


def test_a_draft_is_at_most_twice_as_long_as_the_match():
    source = list(range(100, 140))
    drafter = follow(SourceDrafter(source), source[:2])
    assert len(drafter.propose(99)) == 4
    assert len(follow(drafter, source[2:8]).propose(99)) == 16


def test_only_the_latest_of_many_occurrences_are_looked_at():
    prompt = [9, 1, 2, 30] + [1, 2, 40] * 64

    assert follow(SourceDrafter(prompt), [9, 1, 2]).propose(1) == [40]
    assert follow(SourceDrafter(prompt[:-3]), [9, 1]).propose(1) == [2]
    assert follow(SourceDrafter(prompt[:-3]), [8, 1, 2]).propose(1) == [40]


@pytest.mark.parametrize("span", [(-1, 2), (2, 1), (0, 4)])
def test_a_span_outside_the_prompt_is_refused(span):
    with pytest.raises(ValueError, match="outside the prompt"):
        SourceDrafter([1, 2, 3], sources=[span])


def test_a_minimum_match_of_zero_is_refused():
    with pytest.raises(ValueError, match="min_match"):
        SourceDrafter([1], min_match=0)
