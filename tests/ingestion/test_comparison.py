"""Two texts compared: additions, removals, other wordings and moves, with nothing lost and nothing told twice."""

from hypothesis import given
from hypothesis import strategies as st

from ingestion.comparison import DifferenceKind, TextComparison, TextDifference, compare, in_order
from ingestion.sentence_pairs import SentencedText
from retrieval.types import Span

OLD = """# Terms

The notice period is 30 days. Either party may end the contract in writing.

# Fees

The fee is 30 euros a month. It is due on the first day of each week. Late payment costs five euros.

# Law

The law of Norway applies. Disputes go to the court of Oslo.
"""
NEW = """# Terms

The notice period is 60 days. Either party may end the contract in writing.

# Law

The law of Norway applies. Disputes go to the court of Oslo.

# Fees

The fee is 30 euros a month. It is due on the first day of each week, or on the next working day. Cards are welcome.
"""
WORDS = ["harbour", "ferry", "crane", "30", "wall", "gate", "quay", "a", "the"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(
    lambda words: " ".join(words).capitalize() + "."
)
texts = st.lists(sentences, max_size=12).map(" ".join)


def told(old: str, new: str, comparison: TextComparison) -> list[tuple[str, str | None, str | None]]:
    return [(one.kind.value, _part(old, one.old), _part(new, one.new)) for one in comparison.differences]


def _part(text: str, span: Span | None) -> str | None:
    return None if span is None else text[span.start_char : span.end_char]


def test_changes_are_told_in_the_order_of_the_new_text() -> None:
    moved = "# Fees\n\nThe fee is 30 euros a month."
    due = "It is due on the first day of each week"

    assert told(OLD, NEW, compare(OLD, NEW)) == [
        ("altered", "The notice period is 30 days.", "The notice period is 60 days."),
        ("moved", moved, moved),
        ("altered", f"{due}.", f"{due}, or on the next working day."),
        ("removed", "Late payment costs five euros.", None),
        ("added", None, "Cards are welcome."),
    ]


def test_equal_texts_have_no_differences() -> None:
    comparison = compare(OLD, OLD)

    assert comparison.differences == ()
    assert comparison.unchanged == len(SentencedText(OLD).keys)


def test_other_white_space_is_no_difference() -> None:
    assert compare("The fee  is 30 euros.", "The fee is 30 euros.\n").differences == ()


def test_a_row_that_grew_is_altered() -> None:
    old, new = "Fee | 30\n\nRent | 40", "Fee | 30 | 35\n\nRent | 40"

    assert told(old, new, compare(old, new)) == [("altered", "Fee | 30", "Fee | 30 | 35")]


def test_a_new_text_is_one_addition_and_an_emptied_one_is_one_removal() -> None:
    assert compare("", "One ferry. Two ferries.").differences == (
        TextDifference(DifferenceKind.ADDED, None, Span(0, 23)),
    )
    assert compare("One ferry. Two ferries.", "").differences == (
        TextDifference(DifferenceKind.REMOVED, Span(0, 23), None),
    )


def test_neighbours_in_different_sections_are_differences_of_their_own() -> None:
    found = compare("", "One ferry. Two ferries.", section=lambda span, _: span.start_char >= 11)

    assert [one.new for one in found.differences] == [Span(0, 10), Span(11, 23)]


def test_a_short_row_that_changed_its_place_is_none() -> None:
    assert compare("N/A\n\nThe fee is 30 euros.", "The fee is 30 euros.\n\nN/A").differences == ()


def test_two_sentences_that_became_one_are_one_change() -> None:
    old = "The ferry leaves at noon. It arrives at one o'clock."
    new = "The ferry leaves at noon and it arrives at one o'clock."

    assert told(old, new, compare(old, new)) == [("altered", old, new)]


@given(old=texts, new=texts)
def test_each_sentence_is_unchanged_or_in_one_difference(old: str, new: str) -> None:
    comparison = compare(old, new)

    for text, spans in (
        (old, [one.old for one in comparison.differences if one.old is not None]),
        (new, [one.new for one in comparison.differences if one.new is not None]),
    ):
        covered = [unit for span in spans for unit in SentencedText(text).units_over(span.start_char, span.end_char)]
        assert len(covered) == len(set(covered))
        assert len(covered) + comparison.unchanged == len(SentencedText(text).keys)


@given(old=texts, new=texts)
def test_additions_and_removals_change_their_sides_when_the_texts_do(old: str, new: str) -> None:
    def only(comparison: TextComparison) -> set[DifferenceKind]:
        return {one.kind for one in comparison.differences}

    if not old.split() or not new.split():
        assert only(compare(old, new)) <= {DifferenceKind.ADDED, DifferenceKind.REMOVED}
    if old == new:
        assert only(compare(old, new)) == set()


@given(st.lists(st.integers(0, 30), unique=True, max_size=12))
def test_the_longest_run_in_order_is_found(others: list[int]) -> None:
    pairs = list(enumerate(others))
    kept = in_order(pairs)

    assert list(kept.values()) == sorted(kept.values())
    best = [1] * len(others)  # the slow reference
    for at, other in enumerate(others):
        best[at] = max((best[before] + 1 for before in range(at) if others[before] < other), default=1)
    assert len(kept) == max(best, default=0)
