"""Quotes the opening and the headings of a document that a question asks about as a whole, without a model."""

from dataclasses import replace
from itertools import groupby

from app.answering.quoting.columns import is_line_of_table
from app.answering.states.reading import ANSWERED, Extract, Selection
from app.answering.states.sources import Overview
from retrieval.types import Context, Span


def quotes_of(overview: Overview, context: Context, *, answered: float = ANSWERED) -> Selection | None:
    """The opening and the headings as quotes from the sources of `context`; None where it holds none of them.

    Of a document that is only likely meant there is no more than the opening. An opening with rows of a table is
    several quotes: the rows, which are shown as a table, and what stands above and below them.

    Args:
        overview: Of the document.
        context: Built from the overview's hits.
        answered: The probability from which on the question counts as answered; else the quotes are only likely.
    """
    parts = ([overview.opening] if overview.opening is not None else []) + list(overview.headings)
    parts = parts if overview.score >= answered else parts[:1]
    found = [quote for part in parts if (quote := _quote(overview, context, part)) is not None]
    quotes = tuple(quote for one in found for quote in _rows_apart(one))
    if not quotes:
        return None
    return Selection(
        quotes,
        overview.score,
        "answered" if overview.score >= answered else "unsure",
        threshold=answered,
        probabilities=tuple((quote.source.number, quote.span, quote.score) for quote in quotes),
        title=None if overview.title is None else _quote(overview, context, overview.title),
    )


def _quote(overview: Overview, context: Context, span: Span) -> Extract | None:
    """The quote of a span; of the opening, which two sources may share, as much as one of them shows."""
    shown = [
        (source, Span(span.start_char, min(span.end_char, one.end_char)))
        for source in context.sources
        for one in source.spans
        if one.start_char <= span.start_char < one.end_char
    ]
    source, kept = max(shown, key=lambda found: found[1].end_char, default=(None, span))
    if source is None or span not in {kept, overview.opening}:
        return None
    return Extract(
        source, kept, source.hit.chunk.text_at(kept), overview.score, kept if span == overview.title else None
    )


def _rows_apart(quote: Extract) -> list[Extract]:
    """A quote in parts that are rows of a table throughout, or none at all."""
    lines, at = list[tuple[int, str]](), quote.span.start_char
    for line in quote.text.split("\n"):
        lines.append((at + len(line) - len(line.lstrip()), line.strip()))
        at += len(line) + 1
    said = [(start, line) for start, line in lines if line]
    parts = [list(group) for _, group in groupby(said, key=lambda line: is_line_of_table(line[1]))]
    if len(parts) < 2 or quote.highlight is not None:
        return [quote]
    spans = [Span(part[0][0], part[-1][0] + len(part[-1][1])) for part in parts]
    begin = quote.span.start_char
    return [
        replace(quote, span=span, text=quote.text[span.start_char - begin : span.end_char - begin]) for span in spans
    ]
