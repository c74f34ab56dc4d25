"""app.cli.quoted_answer: an answer by quotes in a terminal and in a pipe, and the footnotes below it."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from app.cli.quoted_answer import QuotedAnswer, footnotes

LEAD, FIRST, SECOND = "2,319 hours", "The pilot had 2,319 hours in *all*.", "He flew\n> - since 1970"
ANSWER = f"**{LEAD}** [2]\n\n> {FIRST} [2]\n>\n> {SECOND} [1]"
UNSURE = f"The documents do not clearly answer this:\n\n> {FIRST} [2]"


def span(answer: str, text: str, after: int = 0) -> dict[str, int]:
    start = answer.index(text, after)
    return {"start": start, "end": start + len(text)}


def done(answer: str, *, lead: bool = True) -> dict[str, Any]:
    """The last event of a stream: the quotes of `answer`, with the lead's words marked in the first."""
    first = span(answer, FIRST)
    quotes: list[dict[str, Any]] = [{**first, "answers": 0.9, "highlights": [span(answer, LEAD, first["start"])]}]
    if SECOND in answer:
        quotes.append({**span(answer, SECOND), "answers": 0.2, "highlights": []})
    return {"lead": span(answer, LEAD) if lead else None, "quoted_spans": quotes}


def printed(answer: str, ending: dict[str, Any], *, terminal: bool = True, letters: int = 3) -> str:
    """What is printed when the text comes some letters at a time."""
    console = Console(file=io.StringIO(), force_terminal=terminal, color_system="standard", width=60, highlight=False)
    shown = QuotedAnswer(console)
    for at in range(0, len(answer), letters):
        shown.feed(answer[at : at + letters])
    shown.finish(ending)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.split("\n"))


def plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", text).split("\n"))


@pytest.mark.parametrize("letters", [1, 3, 1000])
def test_a_terminal_shows_the_lead_bold_and_the_words_that_answer_underlined(letters: int) -> None:
    shown = printed(ANSWER, done(ANSWER), letters=letters)

    assert shown.startswith(f"\x1b[1m{LEAD}\x1b[0m [2]\n")
    assert f"The pilot had \x1b[1;4m{LEAD}\x1b[0m in *all*. [2]" in shown
    lines = [f"{LEAD} [2]", "", f"    {FIRST} [2]", "", "    He flew", "    - since 1970 [1]", ""]
    assert plain(shown) == "\n".join(lines)


def test_a_terminal_shows_marks_of_a_document_without_their_backslashes() -> None:
    answer = "**a \\<b>** [1]\n\n> The type is a \\<b> or [c\\](d). [1]"
    ending = {"lead": span(answer, "a \\<b>"), "quoted_spans": [{**span(answer, "The type is a \\<b> or [c\\](d).")}]}

    assert plain(printed(answer, ending)) == "a <b> [1]\n\n    The type is a <b> or [c](d). [1]\n"
    assert printed(answer, ending, terminal=False) == f"{answer}\n"


def test_a_pipe_gets_the_markdown_as_it_is() -> None:
    assert printed(ANSWER, done(ANSWER), terminal=False) == f"{ANSWER}\n"


def test_the_sentence_of_an_unsure_answer_stands_before_its_quotes() -> None:
    shown = plain(printed(UNSURE, done(UNSURE, lead=False)))

    assert shown == f"The documents do not clearly answer this:\n\n    {FIRST} [2]\n"


@pytest.mark.parametrize(
    "prose", ["Forty ships [1].", "**Forty** ships\n\n> as they say\n\nleft [1].", "*Forty*\n", ""]
)
def test_prose_is_printed_as_it_comes(prose: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, highlight=False)
    shown = QuotedAnswer(console)

    shown.feed(f"{prose} and")

    assert console.file.getvalue() == f"{prose} and"  # type: ignore[attr-defined]
    assert plain(printed(prose, {"quoted_spans": []})) == plain(f"{prose}\n"), "a server without leads"


def citation(index: int, at: int, *, start: int = 0, verified: bool = False) -> dict[str, Any]:
    place = {"document_id": "doc_1", "version": 1, "start_char": start, "end_char": start + 9}
    return {"index": index, "answer_start": at, "verified": verified, **place}


def test_a_lead_and_its_quote_are_one_footnote_and_a_quote_is_word_for_word() -> None:
    listed = footnotes([citation(2, 16), citation(2, 60), citation(1, 90, start=50)], done(ANSWER))

    assert [(one["index"], doubt) for one, doubt in listed] == [(2, "word for word"), (1, "word for word")]
    confirmed = footnotes([citation(2, 16, verified=True), citation(2, 60)], done(ANSWER))
    assert [doubt for _, doubt in confirmed] == [""]


def test_what_is_written_is_verified_or_not() -> None:
    listed = footnotes([citation(1, 4), citation(2, 9, verified=True)], {"quoted_spans": []})

    assert [doubt for _, doubt in listed] == ["not verified", ""]
