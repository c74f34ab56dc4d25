"""app.cli.quoted_answer: an answer by quotes in a terminal and in a pipe, and the footnotes below it."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from app.cli.quoted_answer import QuotedAnswer, footnotes, print_quotes

LEAD, FIRST, SECOND = "2,319 hours", "The pilot had 2,319 hours in *all*.", "He flew\n> - since 1970"
ANSWER = f"**{LEAD}** [2]\n\n> {FIRST} [2]\n>\n> {SECOND} [1]"
NEAREST = "The documents do not clearly answer this:"
UNSURE = f"{NEAREST}\n\n> {FIRST} [2]"


def span(answer: str, text: str, after: int = 0) -> dict[str, int]:
    start = answer.index(text, after)
    return {"start": start, "end": start + len(text)}


def part(answer: str, kind: str, text: str, *cited: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, **span(answer, text), "citations": list(cited), **more}


def done(answer: str, *, own: str = "") -> dict[str, Any]:
    """The last event of a stream: what is before the quotes of `answer`, and these, with marked words in the first."""
    first = span(answer, FIRST)
    leads = answer.startswith("**")
    parts = [part(answer, "note", own)] if own else []
    if leads:
        parts.append(part(answer, "lead", f"**{LEAD}** [2]", 0, words=span(answer, LEAD)))
    marks = [span(answer, LEAD, first["start"])]
    parts.append(part(answer, "quote", f"{FIRST} [2]", int(leads), quoted=first, answers=0.9, highlights=marks))
    if SECOND in answer:
        more = {"quoted": span(answer, SECOND), "answers": 0.2, "highlights": []}
        parts.append(part(answer, "quote", f"{SECOND} [1]", int(leads) + 1, **more))
    return {"parts": parts}


def printed(answer: str, ending: dict[str, Any], *, terminal: bool = True, letters: int = 3, written: int = 0) -> str:
    """What is printed when the text comes some letters at a time, of which the first are `written` by a model."""
    console = Console(file=io.StringIO(), force_terminal=terminal, color_system="standard", width=60, highlight=False)
    shown = QuotedAnswer(console)
    for at in range(0, written, letters):
        shown.feed(answer[at : min(at + letters, written)], part=0)
    for at in range(written, len(answer), letters):
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
    quoted = "The type is a \\<b> or [c\\](d)."
    lead = part(answer, "lead", "**a \\<b>** [1]", 0, words=span(answer, "a \\<b>"))
    quote = part(answer, "quote", f"{quoted} [1]", 1, quoted=span(answer, quoted), answers=0.9, highlights=[])
    ending = {"parts": [lead, quote]}

    assert plain(printed(answer, ending)) == "a <b> [1]\n\n    The type is a <b> or [c](d). [1]\n"
    assert printed(answer, ending, terminal=False) == f"{answer}\n"


def test_a_pipe_gets_the_markdown_as_it_is() -> None:
    assert printed(ANSWER, done(ANSWER), terminal=False) == f"{ANSWER}\n"


def test_the_sentence_of_an_unsure_answer_stands_before_its_quotes() -> None:
    shown = plain(printed(UNSURE, done(UNSURE, own=NEAREST)))

    assert shown == f"The documents do not clearly answer this:\n\n    {FIRST} [2]\n"


@pytest.mark.parametrize(
    "prose", ["Forty ships [1].", "**Forty** ships\n\n> as they say\n\nleft [1].", "*Forty*\n", ""]
)
def test_prose_is_printed_as_it_comes(prose: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, highlight=False)
    shown = QuotedAnswer(console)

    shown.feed(f"{prose} and", part=0)

    assert console.file.getvalue() == f"{prose} and"  # type: ignore[attr-defined]
    assert plain(printed(prose, whole("prose", prose), written=len(prose))) == plain(f"{prose}\n")
    assert plain(printed(prose, {"quoted_spans": []})) == plain(f"{prose}\n"), "a server without parts"


def whole(kind: str, answer: str) -> dict[str, Any]:
    """The last event of an answer that is one part."""
    return {"parts": [part(answer, kind, answer)] if answer else []}


@pytest.mark.parametrize("letters", [1, 3, 1000])
def test_quotes_behind_prose_are_indented_at_its_end(letters: int) -> None:
    prose = "He had **many** hours.\n\n> as they say"
    answer = f"{prose}\n\n> {FIRST} [2]\n>\n> {SECOND} [1]"
    ending = done(answer)
    ending["parts"].insert(0, part(answer, "prose", prose, uncited=[]))

    shown = printed(answer, ending, letters=letters, written=len(prose))

    lines = [*prose.split("\n"), "", f"    {FIRST} [2]", "", "    He flew", "    - since 1970 [1]", ""]
    assert plain(shown) == "\n".join(lines)
    assert f"The pilot had \x1b[1;4m{LEAD}\x1b[0m in *all*. [2]" in shown
    assert printed(answer, ending, terminal=False, letters=letters, written=len(prose)) == f"{answer}\n"


@pytest.mark.parametrize("written", [10, 24])
def test_the_end_of_prose_that_was_held_back_is_printed_behind_the_rest(written: int) -> None:
    answer = "He had many hours. [1]\n\nHe flew. [1]"

    assert plain(printed(answer, whole("prose", answer), written=written)) == f"{answer}\n"


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("refusal", "I don't know."),
        ("reply", "There are 2 documents here.\n\n- `**a**.txt`\n- b.txt"),
        ("clarify", "Which document do you mean?\n\n- `a.txt`"),
        ("json", '{"answer": "> **2,319** hours", "sources": [1]}'),
    ],
)
def test_what_comes_whole_is_printed_as_it_is_and_not_before_its_end(kind: str, answer: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, highlight=False)
    shown = QuotedAnswer(console)

    shown.feed(answer)

    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
    shown.finish(whole(kind, answer))
    assert plain(console.file.getvalue()) == f"{answer}\n"  # type: ignore[attr-defined]


def test_a_pipe_gets_what_comes_whole_at_once() -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=60, highlight=False)

    QuotedAnswer(console).feed(ANSWER)

    assert console.file.getvalue() == ANSWER  # type: ignore[attr-defined]


def citation(index: int, at: int, *, start: int = 0, verified: bool = False) -> dict[str, Any]:
    place = {"document_id": "doc_1", "version": 1, "start_char": start, "end_char": start + 9}
    return {"index": index, "answer_start": at, "verified": verified, **place}


def test_a_lead_and_its_quote_are_one_footnote_and_a_quote_is_word_for_word() -> None:
    listed = footnotes([citation(2, 16), citation(2, 60), citation(1, 90, start=50)], done(ANSWER))

    assert [(one["index"], doubt) for one, doubt in listed] == [(2, "word for word"), (1, "word for word")]
    confirmed = footnotes([citation(2, 16, verified=True), citation(2, 60)], done(ANSWER))
    assert [doubt for _, doubt in confirmed] == [""]


def test_what_is_written_is_verified_or_not() -> None:
    cited = [citation(1, 4), citation(2, 9, verified=True)]
    prose = {"kind": "prose", "start": 0, "end": 12, "citations": [0, 1], "uncited": []}

    endings: list[dict[str, Any]] = [{"parts": [prose]}, {"quoted_spans": []}]
    for ending in endings:
        assert [doubt for _, doubt in footnotes(cited, ending)] == ["not verified", ""]


@pytest.mark.parametrize("terminal", [True, False])
def test_quotes_are_printed_before_the_words_in_a_terminal_alone(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=60, highlight=False)

    print_quotes(console, {"answer": ANSWER, **done(ANSWER)})

    shown = plain(console.file.getvalue())  # type: ignore[attr-defined]
    assert shown.startswith("Your documents say:\n") == terminal
    assert ("The pilot had" in shown) == terminal
