"""Sentences that were rewritten in their place: pairs in order, none twice, the best of all."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ingestion.rewordings import LEAST_LIKENESS, ChangedPlace, Likeness, Rewording, most_alike_in_order, rewordings
from ingestion.sentence_pairs import SentencedText

WORDS = ["harbour", "ferry", "crane", "30", "31", "wall", "gate", "a"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(
    lambda words: " ".join(words).capitalize() + "."
)
texts = st.lists(sentences, max_size=8).map(" ".join).map(SentencedText)
runs = st.builds(lambda start, length: range(start, start + length), st.integers(0, 5), st.integers(1, 2))
tried = st.lists(st.builds(Rewording, runs, runs, st.integers(1, 10).map(lambda tenths: tenths / 10)), max_size=9)


def whole(old: SentencedText, new: SentencedText) -> ChangedPlace:
    return ChangedPlace(range(len(old.keys)), range(len(new.keys)))


def pairs_of(old: str, new: str) -> list[tuple[list[str], list[str]]]:
    before, after = SentencedText(old), SentencedText(new)
    return [
        ([before.keys[unit] for unit in one.old], [after.keys[unit] for unit in one.new])
        for one in rewordings(before, after, [whole(before, after)])
    ]


def test_two_sentences_become_one_and_one_becomes_two() -> None:
    two = "The ferry leaves the old harbour at noon. The crane beside the wall lifts thirty crates."
    one = "At noon the ferry leaves, and beside the wall of the old harbour a crane lifts its thirty crates."
    apart = ["The ferry leaves the old harbour at noon.", "The crane beside the wall lifts thirty crates."]

    assert pairs_of(two, one) == [(apart, [one])]
    assert pairs_of(one, two) == [([one], apart)]


def test_of_pairs_that_cross_the_one_most_alike_is_taken() -> None:
    old = "The ferry leaves at noon. The crane lifts thirty crates of oranges."
    new = "The crane lifts thirty crates of lemons. A ferry departs at noon."

    assert pairs_of(old, new) == [
        (["The crane lifts thirty crates of oranges."], ["The crane lifts thirty crates of lemons."])
    ]


def test_give_way_is_called_between_pairs_that_are_tried() -> None:
    old, new = SentencedText("The fee is 30 euros."), SentencedText("The fee is 25 euros.")
    calls: list[None] = []

    rewordings(old, new, [whole(old, new)], give_way=lambda: calls.append(None))

    assert len(calls) == 1


@given(old=texts, new=texts)
def test_likeness_is_the_same_from_either_side_and_whole_for_equal_sentences(
    old: SentencedText, new: SentencedText
) -> None:
    there, back = Likeness(old, new), Likeness(new, old)

    for unit in range(len(old.keys)):
        for other in range(len(new.keys)):
            found = there.of(range(unit, unit + 1), range(other, other + 1))
            assert 0 <= found <= 1 + 1e-9
            assert abs(found - back.of(range(other, other + 1), range(unit, unit + 1))) < 1e-9
            if old.words[unit] == new.words[other]:
                assert found > 1 - 1e-9


@given(old=texts, new=texts)
def test_pairs_are_alike_in_order_and_no_sentence_is_in_two(old: SentencedText, new: SentencedText) -> None:
    found = rewordings(old, new, [whole(old, new)])

    for one in found:
        assert one.likeness > LEAST_LIKENESS
        assert min(len(one.old), len(one.new)) == 1
        assert max(len(one.old), len(one.new)) <= 2
        assert one.old.stop <= len(old.keys)
        assert one.new.stop <= len(new.keys)
    for one, following in pairwise(found):
        assert one.old.stop <= following.old.start
        assert one.new.stop <= following.new.start


@given(found=tried)
def test_the_chain_is_the_best_of_all(found: list[Rewording]) -> None:
    chain = most_alike_in_order(found, least=0.25)

    def gain(ones: list[Rewording]) -> float:
        return sum(one.likeness - 0.25 for one in ones)

    def best(after: Rewording | None) -> float:  # the slow reference
        following = [
            one
            for one in found
            if one.likeness > 0.25
            and (after is None or (after.old.stop <= one.old.start and after.new.stop <= one.new.start))
        ]
        return max((gain([one]) + best(one) for one in following), default=0.0)

    assert abs(gain(chain) - best(None)) < 1e-9
    for one, following in pairwise(chain):
        assert one.old.stop <= following.old.start
        assert one.new.stop <= following.new.start
