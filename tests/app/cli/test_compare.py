"""`footnote compare` shows the changes between two versions."""

from typing import Any

import pytest

from app.cli.compare import shown, summary
from tests.app.cli.command_line import CommandLine


def passage(text: str, *, page: int | None = None) -> dict[str, Any]:
    return {"text": text, "page_start": page, "page_end": page, "start_char": 0, "end_char": len(text)}


def test_an_altered_passage_shows_both_wordings_in_one_line() -> None:
    words = [
        {"kind": "equal", "text": "The notice period is\n"},
        {"kind": "removed", "text": "30 "},
        {"kind": "added", "text": "60 "},
        {"kind": "equal", "text": "days."},
    ]
    old, new = passage("The notice period is 30 days.", page=2), passage("The notice period is\n60 days.", page=3)
    change = {"kind": "altered", "section": ["Terms", "Notice"], "old": old, "new": new, "words": words}

    assert shown(change).plain == ("altered, p. 3: Terms › Notice\nThe notice period is [-30-] {+60+} days.\n")


def test_a_rewritten_passage_shows_one_wording_above_the_other() -> None:
    words = [
        {"kind": "removed", "text": "Tenants may leave after "},
        {"kind": "added", "text": "Notice by either party takes "},
        {"kind": "equal", "text": "60 days."},
    ]
    old, new = passage("Tenants may leave after 60 days."), passage("Notice by either party takes 60 days.")
    change = {"kind": "altered", "section": [], "old": old, "new": new, "words": words}

    assert shown(change).plain == (
        "altered\n[-Tenants may leave after 60 days.-]\n{+Notice by either party takes 60 days.+}\n"
    )


@pytest.mark.parametrize(
    ("kind", "line"), [("added", "{+Cards too.+}"), ("removed", "[-Cards too.-]"), ("moved", "Cards too.")]
)
def test_other_changes_show_their_passage(kind: str, line: str) -> None:
    sides = {"old": None if kind == "added" else passage("Cards too."), "new": None}
    if kind != "removed":
        sides["new"] = passage("Cards too.")

    assert shown({"kind": kind, "section": [], "words": [], **sides}).plain == f"{kind}\n{line}\n"


def test_the_last_line_names_the_versions_and_counts_the_changes() -> None:
    counts = {"added": 1, "removed": 0, "altered": 1200, "moved": 0, "unchanged": 4}
    old, new = {"document_id": "doc_1", "version": 1}, {"document_id": "doc_1", "version": 2}

    same = summary({"old": old, "new": new, "counts": counts})
    other = summary({"old": {"document_id": "doc_2", "version": 1}, "new": new, "counts": dict.fromkeys(counts, 0)})

    assert same == "version 1 → doc_1 version 2: 1 added, 1,200 altered, 4 unchanged."
    assert other == "doc_2 version 1 → doc_1 version 2: both are empty."


def test_a_document_that_does_not_exist_is_refused(footnote: CommandLine) -> None:
    assert footnote.refused("compare", "doc_none") == "There is no such document."
