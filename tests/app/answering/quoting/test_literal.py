"""app.answering.quoting.literal: what a document says is shown, and none of it reaches into the quotes behind it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.answering.formats.answer_formats import Format
from app.answering.quoting.literal import literal
from tests.app.answering.part_texts import highlighted_in, lead_in, text_of
from tests.app.answering.quoting.test_rendering import written

SECOND = "The plan costs 42 euros."
HOSTILE = [
    "<!-- The Condor plan costs 40 euros a month.",
    "``` The Condor plan costs 41 euros a month.",
    "~~~ The Condor plan costs 41 euros a month.",
    "<script> The Condor plan costs 40 euros.",
    "<pre> The Condor plan costs 40 euros.",
    "<?php The Condor plan costs 40 euros.",
    "<![CDATA[ The Condor plan costs 40 euros.",
    "<img src=x onerror=alert(1)> The Condor plan costs 40 euros.",
    "The Condor plan ![costs](https://tracker.example/a.png) 40 euros.",
    "The [Condor plan](javascript:alert) costs 40 euros.",
    "[Condor plan]: https://example.org",
    "The <https://example.org> plan costs 40 euros.",
    "`code` <b>bold</b> ``more ` code`` \\`<i>",
]
SHOWN = {"text", "softbreak", "hardbreak", "code_inline", "em_open", "em_close", "strong_open", "strong_close"}
"""What may be inside a line of a quote."""


def lines_of(text: str) -> list[Token]:
    """The lines that a CommonMark reader shows; fails where one of the answer's is in anything but a paragraph."""
    tokens = MarkdownIt("commonmark").parse(text)
    assert not {"fence", "html_block", "code_block"} & {token.type for token in tokens}, text
    return [token for token in tokens if token.type == "inline"]


def parts_of(line: Token) -> list[Token]:
    return line.children or []


@pytest.mark.parametrize("sentence", HOSTILE)
def test_a_quote_is_shown_with_its_footnote_and_hides_none(sentence: str) -> None:
    first, second = lines_of(written(sentence, SECOND).text)

    for line, marker in ((first, "[1]"), (second, "[2]")):
        assert {token.type for token in parts_of(line)} <= SHOWN
        assert parts_of(line)[-1].content.endswith(marker)
    assert parts_of(second)[0].content.startswith(SECOND)


@pytest.mark.parametrize("sentence", HOSTILE)
def test_nothing_but_backslashes_is_added(sentence: str) -> None:
    assert literal(sentence).replace("\\", "") == sentence.replace("\\", "")


def test_text_without_such_marks_is_as_it_was() -> None:
    text = "Of 3 < 4 and *all* `a < b` [see below] it's 40 % (a > b), ~5, ``x ` y``."

    assert literal(text) == text


def test_words_that_lead_are_literal_too() -> None:
    found = written("The tag is <script> here.", words="<script>", lead=True)

    assert found.text.startswith("**\\<script>** [1]")
    lead = lead_in(found.parts)
    assert lead is not None
    assert text_of(found.text, lead) == "\\<script>"
    assert highlighted_in(found.text, found.parts)[0] == ["\\<script>"]


def test_plain_text_and_json_hold_no_backslash() -> None:
    forms: tuple[Format, ...] = ("text", "json")
    for form in forms:
        assert "\\" not in written("The tag is <b> here.", form=form).text


@pytest.mark.parametrize("sentence", ["``` The Condor plan costs 41 euros.", "---", "~~~"])
def test_a_line_of_nothing_but_marks_is_shown_as_plain_text(sentence: str) -> None:
    assert written(sentence, form="text").text == f"“{sentence}” [1]"


@given(texts=st.lists(st.text(alphabet="<!-a>`~[](:)/ b\\", min_size=1).filter(str.strip), min_size=2, max_size=3))
def test_of_any_marks_each_footnote_is_shown(texts: list[str]) -> None:
    plans = [f"Plan {number}: {text}" for number, text in enumerate(texts)]
    shown = "".join(
        child.content
        for line in lines_of(written(*plans).text)
        for child in parts_of(line)
        if child.type in {"text", "code_inline"}
    )

    assert [*map(int, re.findall(r"\[(\d+)\]", shown))][-1:] == [len(texts)]
    assert {f"[{number}]" for number in range(1, len(texts) + 1)} <= {*re.findall(r"\[\d+\]", shown)}
