"""Writes selected quotes as the text of an answer: a lead where a few words answer, and the quotes with footnotes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answering.answers.parts import (
    AnyPart,
    CitedConflict,
    JsonPart,
    LeadPart,
    NoteCode,
    NotePart,
    QuotePart,
)
from app.answering.citing.citation import Citation, Pages
from app.answering.formats.answer_formats import Format, json_answer
from app.answering.formats.plain_text import PlainText
from app.answering.quoting.literal import literal
from app.answering.quoting.tables import shown_table
from app.answering.states.reading import Extract, QuoteConflict
from retrieval.footnote_numbers import marker as marker_of
from retrieval.footnote_numbers import without_markers
from retrieval.types import Span

MOST_LEAD_CHARS = 120
"""The longest words that lead an answer; longer ones are marked in their quote alone."""

_BREAK = re.compile(r"(?<![ \t])[ \t]*+[\r\n\v\f\x85\u2028\u2029]\s*+")
# A line break that stays one: before an item of a list, and between the rows of a table.
_LINE = re.compile(
    r"(?<=[:|])[^\S\n]*+\n\s*+"
    r"|(?<!\s)[^\S\n]*+\n\s*+(?=(?:[-*•‣▪◦–+]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s|[^\n|]*\|)"
)
_HEADING_MARK = re.compile(r"^#{1,6}[ \t]+", re.M)


@dataclass(frozen=True, slots=True)
class Quotation:
    """The text of an answer by quotes. Offsets count from the beginning of `text`.

    Attributes:
        text: The lead and the quotes, with their markers.
        citations: The footnotes, in the order of their markers.
        parts: The lead, the note that sources disagree, and the quotes, likeliest first; one part in JSON.
        conflicts: The footnotes that disagree.
    """

    text: str
    citations: tuple[Citation, ...]
    parts: tuple[AnyPart, ...]
    conflicts: tuple[CitedConflict, ...] = ()


def lead_words(quote: Extract) -> str:
    """The highlighted words of a quote in one line, with the unit of a cell.

    "" where there are none or too many to lead an answer.
    """
    line = " ".join(_shown(quote.words, form="text").split())
    unit = f" {quote.cell.unit}" if line and quote.cell is not None and quote.cell.unit else ""
    return line + unit if len(line) <= MOST_LEAD_CHARS else ""


def quotation(
    quotes: Sequence[Extract],
    *,
    form: Format,
    pages: Pages,
    lead: Extract | None = None,
    opening: str = "",
    conflict: QuoteConflict | None = None,
    disagree: str = "",
) -> Quotation:
    """The text of an answer by quotes, and its footnotes.

    In Markdown each quote is a block quotation, in plain text a line in quotation marks. A quote is shown without its
    own markers, with its HTML, links and fences as text (`quoting.literal`), and with line breaks only before items of
    lists and between rows of tables; its footnote cites it exactly as in the document. A lead that is a cell of a table
    has its unit, and its column's names behind its marker. In Markdown, rows of a table are
    below the names of their columns (`quoting.tables`).
    In JSON (`formats.answer_schema`) the answer is the lead, else the quotes in one line, and a footnote is placed at
    the source's number in `sources`.

    Args:
        quotes: Likeliest first, at least one.
        form: "text" removes Markdown from the quotes.
        pages: Page tables of documents with sources across pages.
        lead: The quote whose highlighted words lead the answer; one that is not among `quotes` is not shown again.
        opening: A sentence before the quotes.
        conflict: Two of the quotes that disagree; a note says their words, behind `disagree`, but not in JSON.
    """
    assert quotes, "a refusal quotes nothing"
    words = lead_words(lead) if lead is not None else ""
    if form == "json":
        if lead is not None and lead not in quotes:
            return _json((lead, *quotes), "", pages)
        return _json(quotes, words, pages, conflict)
    text = ""
    citations: list[Citation] = []
    parts: list[AnyPart] = []
    if words and lead is not None:
        if form == "markdown":
            words = literal(words)
        text = words if form == "text" else f"**{words}**"
        at = 0 if form == "text" else len("**")
        text, citation = _marked(text, lead, pages)
        if lead.cell is not None and lead.cell.column:
            column = without_markers(lead.cell.column)
            text += f", {literal(column) if form == 'markdown' else column}"
        citations.append(citation)
        parts.append(LeadPart(start_char=0, end_char=len(text), words=Span(at, at + len(words))))
    elif opening:
        text = opening
    conflicts: tuple[CitedConflict, ...] = ()
    if conflict is not None:
        text += ("\n\n" if form == "markdown" else "\n") if text else ""
        start = len(text)
        text += disagree
        for quote, mark in ((quotes[conflict.first], ";"), (quotes[conflict.other], ".")):
            said = lead_words(quote)
            text, citation = _marked(f"{text} {literal(said) if form == 'markdown' else said}", quote, pages)
            text += mark
            citations.append(citation)
        conflicts = (CitedConflict(conflict.what, (len(citations) - 2, len(citations) - 1)),)
        parts.append(NotePart(start_char=start, end_char=len(text), code=NoteCode.SOURCES_DISAGREE))
    for number, quote in enumerate(quotes):
        if text:
            text += ("\n>\n" if number else "\n\n") if form == "markdown" else "\n"
        text += "> " if form == "markdown" else ""
        start = len(text)
        text += "" if form == "markdown" else "“"
        shown = _in_markdown(quote) if form == "markdown" else _in_plain_text(quote)
        at = len(text)
        marks = tuple(Span(at + one.start_char, at + one.end_char) for one in shown.highlights)
        words_end = at + len(shown.text)
        text, citation = _marked(text + shown.text + shown.behind, quote, pages)
        citations.append(citation)
        parts.append(
            QuotePart(
                start_char=start,
                end_char=len(text),
                quoted=Span(at, words_end),
                answers=quote.score,
                highlights=marks,
            )
        )
    return Quotation(text, tuple(citations), tuple(parts), conflicts)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A quote as it is shown, the words in it that answer, and what is between it and its marker."""

    text: str
    highlights: list[Span]
    behind: str


def _in_markdown(quote: Extract) -> _Shown:
    """The lines of a block quotation behind its first sign."""
    table = shown_table(quote)
    if table is None:
        shown = _shown(quote.text, form="markdown").replace("\n", "\n> ")
        return _Shown(shown, _highlights(quote, shown, form="markdown"), "")
    marks = []
    if table.highlight is not None:
        signs = len("> ") * table.text.count("\n", 0, table.highlight.start_char)
        marks.append(Span(table.highlight.start_char + signs, table.highlight.end_char + signs))
    # Behind a table's last row the marker would be a cell, which is shown nowhere.
    return _Shown(table.text.replace("\n", "\n> "), marks, "\n>\n>")


def _in_plain_text(quote: Extract) -> _Shown:
    shown = _shown(quote.text, form="text")
    return _Shown(shown, _highlights(quote, shown, form="text"), "”")


def _marked(text: str, quote: Extract, pages: Pages) -> tuple[str, Citation]:
    """`text` with the marker of a quote behind it, and the footnote."""
    marker = marker_of(quote.source.number)
    at = len(text) + 1
    return f"{text} {marker}", _citation(quote, Span(at, at + len(marker)), pages)


def _json(quotes: Sequence[Extract], words: str, pages: Pages, conflict: QuoteConflict | None = None) -> Quotation:
    answer = words or " ".join(_shown(quote.text, form="json") for quote in quotes)
    numbers = tuple(dict.fromkeys(quote.source.number for quote in quotes))
    text, spans = json_answer(answer, numbers)
    places = dict(zip(numbers, spans, strict=True))
    citations = tuple(_citation(quote, places[quote.source.number], pages) for quote in quotes)
    conflicts: tuple[CitedConflict, ...] = ()
    if conflict is not None:
        first, other = (numbers.index(quotes[one].source.number) for one in (conflict.first, conflict.other))
        conflicts = (CitedConflict(conflict.what, (first, other)),)
    return Quotation(text, citations, (JsonPart(start_char=0, end_char=len(text)),), conflicts)


def _shown(text: str, *, form: Format) -> str:
    text = _HEADING_MARK.sub("", text)
    lines = _LINE.split(text) if form != "json" else [text]
    shown = [_BREAK.sub(" ", without_markers(line)).strip() for line in lines]
    if form != "json":
        shown = [literal(line) if form == "markdown" else _plain(line) for line in shown]
    return "\n".join(line for line in shown if line)


def _plain(line: str) -> str:
    writer = PlainText()
    return (writer.feed(line) + writer.finish()).strip() or line  # a line that is nothing but marks is shown


def _highlights(quote: Extract, shown: str, *, form: Format) -> list[Span]:
    """Where the highlighted words of a quote are in its shown text: the occurrence that they are in the document."""
    words = _shown(quote.words, form=form).replace("\n", "\n> " if form == "markdown" else "\n")
    if not words or quote.highlight is None:
        return []
    before = _shown(quote.text[: quote.highlight.start_char - quote.span.start_char], form=form)
    found = [match.start() for match in re.finditer(f"(?={re.escape(words)})", shown)]
    earlier = sum(1 for _ in re.finditer(f"(?={re.escape(words)})", before))
    return [Span(at, at + len(words)) for at in found[min(earlier, len(found) - 1) :][:1]]


def _citation(quote: Extract, marker: Span, pages: Pages) -> Citation:
    """A quote equals the passage it cites, so its support is 1."""
    return Citation.of(
        quote.source,
        quote.span,
        marker=marker,
        support=1.0,
        origin="attributed",
        pages=pages,
        answers=quote.score,
        words=quote.highlight,
    )


def unconfirmed(quoted: Quotation) -> Quotation:
    """The same quotation with footnotes that are not verified: its quotes may not answer the question, or disagree."""
    return replace(quoted, citations=tuple(replace(one, verified=False) for one in quoted.citations))
