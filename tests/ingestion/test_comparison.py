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


def test_a_sentence_that_was_rewritten_in_its_place_is_altered() -> None:
    before = "The harbour opens at six.\n\n{}\n\nDogs stay on a lead."
    old = "Tenants who want to end their lease have to tell the landlord three months earlier."
    new = "A lease ends three months after either side gave notice of it to the landlord."

    assert told(before.format(old), before.format(new), compare(before.format(old), before.format(new))) == [
        ("altered", old, new)
    ]


def test_another_sentence_in_its_place_is_no_new_wording() -> None:
    before = "The harbour opens at six.\n\n{}\n\nDogs stay on a lead."
    old = "Tenants who want to end their lease have to tell the landlord three months earlier."
    new = "Bicycles are kept in the yard behind the second gate."

    assert told(before.format(old), before.format(new), compare(before.format(old), before.format(new))) == [
        ("removed", old, None),
        ("added", None, new),
    ]


def test_rows_whose_numbers_all_changed_are_each_altered() -> None:
    old = "\n\n".join(f"Berth {row} | {7 * row} | {row * row}" for row in range(1, 200))
    new = "\n\n".join(f"Berth {row} | {9 * row} | {row * row + 3}" for row in range(1, 200))

    found = told(old, new, compare(old, new))

    assert {(kind, str(before).split(" |")[0], str(after).split(" |")[0]) for kind, before, after in found} == {
        ("altered", f"Berth {row}", f"Berth {row}") for row in range(1, 200)
    }


@given(old=texts, new=texts)
def test_each_character_is_unchanged_or_in_one_difference(old: str, new: str) -> None:
    comparison = compare(old, new)

    left: list[list[str]] = []
    for text, spans in (
        (old, [one.old for one in comparison.differences if one.old is not None]),
        (new, [one.new for one in comparison.differences if one.new is not None]),
    ):
        covered = [at for span in spans for at in range(span.start_char, span.end_char)]
        assert len(covered) == len(set(covered))
        sentences = SentencedText(text)
        units = {unit for span in spans for unit in sentences.units_over(span.start_char, span.end_char)}
        whole = [at for unit in units for at in range(*sentences.spans[unit])]
        assert {at for at in covered if not text[at].isspace()} == {at for at in whole if not text[at].isspace()}
        left.append(sorted(key for unit, key in enumerate(sentences.keys) if unit not in units))
    assert left[0] == left[1]
    assert len(left[0]) == comparison.unchanged


@given(old=texts, new=texts)
def test_with_the_texts_exchanged_the_same_sentences_are_told(old: str, new: str) -> None:
    def sentences(text: str, span: Span | None) -> range:
        return range(0) if span is None else SentencedText(text).units_over(span.start_char, span.end_char)

    def fates(comparison: TextComparison, *, turned: bool) -> set[tuple[str, str, int, range]]:
        """Each sentence of either text with its kind, and the new wording of one that is altered."""
        before, after = (new, old) if turned else (old, new)
        found: set[tuple[str, str, int, range]] = set()
        for one in comparison.differences:
            sides = {"old": sentences(before, one.old), "new": sentences(after, one.new)}
            first, second = ("new", "old") if turned else ("old", "new")
            exchanged = {DifferenceKind.ADDED: "removed", DifferenceKind.REMOVED: "added"} if turned else {}
            kind = exchanged.get(one.kind, one.kind.value)
            found |= {(kind, "old", unit, _paired(one, sides[second])) for unit in sides[first]}
            found |= {(kind, "new", unit, _paired(one, sides[first])) for unit in sides[second]}
        return found

    forth, back = compare(old, new), compare(new, old)

    assert fates(forth, turned=False) == fates(back, turned=True)
    assert forth.unchanged == back.unchanged


def _paired(difference: TextDifference, others: range) -> range:
    return others if difference.kind is DifferenceKind.ALTERED else range(0)


@given(text=texts)
def test_a_text_and_itself_have_no_differences(text: str) -> None:
    assert compare(text, text).differences == ()


@given(st.lists(st.integers(0, 30), unique=True, max_size=12))
def test_the_longest_run_in_order_is_found(others: list[int]) -> None:
    pairs = list(enumerate(others))
    kept = in_order(pairs)

    assert list(kept.values()) == sorted(kept.values())
    best = [1] * len(others)  # the slow reference
    for at, other in enumerate(others):
        best[at] = max((best[before] + 1 for before in range(at) if others[before] < other), default=1)
    assert len(kept) == max(best, default=0)
