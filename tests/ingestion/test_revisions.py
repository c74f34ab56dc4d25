"""Passages are found again in the next version of their text."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ingestion.revisions import FoundPassage, PassageState, Revision
from ingestion.wording import changes
from retrieval.types import Span
from tests.bench.ingest.ageing import EditedText, is_fit

OLD = (
    "The notice period for tenants is thirty days. The landlord keeps the stairs clean.\n\n"
    "A deposit of 900 euros is due before the keys are handed over. Pets need a written permission.\n\n"
    "The heating runs from October to April. Bicycles are kept in the cellar, not in the hall."
)
WORDS = st.text(alphabet="abc 12.,\n|é語", max_size=200)


def found(passage: str, new: str, *, old: str | None = OLD) -> tuple[PassageState, str | None]:
    """The state of a passage of `OLD`, and its words in the new text."""
    one = Revision(new, old=old).find(passage, start_char=OLD.index(passage))
    return one.state, None if one.span is None else new[one.span.start_char : one.span.end_char]


def test_a_passage_that_stands_where_it_stood_is_current() -> None:
    passage = "The landlord keeps the stairs clean."
    assert found(passage, OLD + " Smoking is forbidden.") == (PassageState.CURRENT, passage)


def test_a_passage_behind_new_sentences_has_moved_to_its_new_offsets() -> None:
    passage = "Pets need a written permission."
    new = "This agreement begins in May. " + OLD
    one = Revision(new, old=OLD).find(passage, start_char=OLD.index(passage))
    start = new.index(passage)
    assert one == FoundPassage(PassageState.MOVED, Span(start, start + len(passage)))


def test_a_passage_whose_lines_break_elsewhere_has_moved() -> None:
    passage = "Bicycles are kept in the cellar, not in the hall."
    new = OLD.replace("kept in the cellar", "kept in\nthe cellar")
    assert found(passage, new) == (PassageState.MOVED, passage.replace("kept in the", "kept in\nthe"))


def test_a_reworded_sentence_is_altered_and_its_new_words_are_found() -> None:
    passage = "The notice period for tenants is thirty days."
    reworded = "For tenants the notice period is three months."
    assert found(passage, OLD.replace(passage, reworded)) == (PassageState.ALTERED, reworded)


def test_a_renumbered_sentence_is_altered() -> None:
    passage = "A deposit of 900 euros is due before the keys are handed over."
    assert found(passage, OLD.replace("900", "1,200")) == (PassageState.ALTERED, passage.replace("900", "1,200"))


def test_a_part_of_a_sentence_is_altered_without_the_rest_of_it() -> None:
    new = OLD.replace("from October to April", "from November to March")
    assert found("from October to April", new)[0] is PassageState.ALTERED
    assert found("The heating runs", new) == (PassageState.CURRENT, "The heating runs")


def test_a_deleted_sentence_is_gone_although_others_share_its_words() -> None:
    passage = "The landlord keeps the stairs clean."
    assert found(passage, OLD.replace(passage, "")) == (PassageState.GONE, None)


def test_of_equal_rows_the_one_between_the_same_neighbours_is_taken() -> None:
    rows = ["Region: North", "Total | 5", "Region: South", "Total | 5", "Region: West", "Total | 5"]
    old, new = "\n".join(rows), "\n".join([*rows[4:], *rows[:4]])
    start = old.index("Total | 5", old.index("South"))
    there = new.index("Total | 5", new.index("South"))
    assert Revision(new, old=old).find("Total | 5", start_char=start).span == Span(there, there + 9)


def test_the_row_that_was_deleted_is_gone_and_not_its_equal() -> None:
    rows = ["Region: North", "Total | 5", "Region: South", "Total | 5", "Region: West", "Total | 5"]
    old = "\n".join(rows)
    new = "\n".join(row for at, row in enumerate(rows) if at != 3)
    start = old.index("Total | 5", old.index("South"))
    assert Revision(new, old=old).find("Total | 5", start_char=start).state is PassageState.GONE


def test_without_the_old_text_passages_are_found_too() -> None:
    passage = "The notice period for tenants is thirty days."
    assert found(passage, "Foreword. " + OLD, old=None) == (PassageState.MOVED, passage)
    assert found(passage, OLD.replace("thirty", "sixty"), old=None)[0] is PassageState.ALTERED
    assert found(passage, "Nothing of it is left here.", old=None) == (PassageState.GONE, None)


@given(WORDS, st.integers(0, 200), st.integers(1, 60), st.booleans())
def test_in_an_equal_text_every_passage_is_current(text: str, start: int, length: int, known: bool) -> None:
    passage = text[start : start + length]
    one = Revision(text, old=text if known else None).find(passage, start_char=start)
    if not known:
        assert one.state in {PassageState.CURRENT, PassageState.MOVED, PassageState.GONE, PassageState.ALTERED}
    elif passage:
        assert one == FoundPassage(PassageState.CURRENT, Span(start, start + len(passage)))


@given(WORDS, WORDS, st.integers(0, 200), st.integers(1, 60))
def test_a_place_is_in_the_new_text_and_unchanged_words_are_the_same(
    old: str, new: str, start: int, length: int
) -> None:
    passage = old[start : start + length]
    one = Revision(new, old=old).find(passage, start_char=start)
    if one.span is None:
        assert one.state is PassageState.GONE
        return
    assert 0 <= one.span.start_char < one.span.end_char <= len(new) or not passage
    words = new[one.span.start_char : one.span.end_char].split()
    assert (words == passage.split()) == (one.state is not PassageState.ALTERED)


def test_of_edited_sentences_nearly_all_are_found() -> None:
    draw = random.Random(7)
    nouns = ["rent", "deposit", "cellar", "garden", "window", "tenant", "owner", "street", "winter", "repair"]
    sentences = [
        f"Clause {at} on the {draw.choice(nouns)} says that the {draw.choice(nouns)} of house {draw.randint(1, 99)} "
        f"has {draw.randint(2, 40)} {draw.choice(nouns)}s behind the {draw.choice(nouns)} until {1900 + at}."
        for at in range(120)
    ]
    text = " ".join(sentences)
    assert is_fit(text)
    edited = EditedText(text, seed=3)
    revision = Revision(edited.new, old=text)
    wanted = [one for one in edited.expected() if one is not None]
    right = [
        revision.find(text[one.passage.start_char : one.passage.end_char], start_char=one.passage.start_char).state
        is one.state
        for one in wanted
    ]
    assert len(right) > 60
    assert sum(right) >= 0.95 * len(right)


def test_changes_mark_the_words_that_differ() -> None:
    runs = changes("The fee is 30 euros.", "The monthly fee is 35 euros.")
    assert [(run.kind, run.text) for run in runs] == [
        ("equal", "The "),
        ("added", "monthly "),
        ("equal", "fee is "),
        ("removed", "30 "),
        ("added", "35 "),
        ("equal", "euros."),
    ]


@given(WORDS, WORDS)
def test_changes_hold_both_wordings(old: str, new: str) -> None:
    runs = changes(old, new)
    assert "".join(run.text for run in runs if run.kind != "removed") == new
    kept = "".join(run.text for run in runs if run.kind != "added")
    assert kept.split() == old.split() or "".join(kept.split()) == "".join(old.split())
    assert all(run.text for run in runs)


@given(WORDS)
def test_equal_wordings_have_one_run(text: str) -> None:
    assert [run.kind for run in changes(text, text)] == (["equal"] if text else [])
