"""Widens quotes that begin with an English pronoun by the sentence before them, which says whom or what they speak of.

"They begin with a great two-handed sword." answers nobody who does not read "Barbarians are warriors." before it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from app.answering.states.reading import Extract
from retrieval.sentences import sentence_spans
from retrieval.types import Span

_MOST_CHARS = 300
"""The longest sentence that is added."""

_POINTS_BACK = re.compile(r"(?:He|She|They|It|His|Her|Their|Its)\b")
_POINTS_NOWHERE = re.compile(r"It (?:is|was|seems|appears|follows|takes)\b[^.,;]{0,40}?\b(?:that|to|whether|if)\b")
_NEXT_LINE = re.compile(r"[ \t]*+(?:\n[ \t]*+)?")  # a blank line would end the paragraph


def with_antecedents(quotes: Sequence[Extract]) -> tuple[Extract, ...]:
    """The same quotes, each that begins with an English pronoun with the sentence before it in its paragraph.

    A quote stays as it is where that sentence was not read, or is part of another quote.
    """
    return tuple(_widened(quote, [other for other in quotes if other is not quote]) for quote in quotes)


def _widened(quote: Extract, others: Sequence[Extract]) -> Extract:
    if not _POINTS_BACK.match(quote.text) or _POINTS_NOWHERE.match(quote.text):
        return quote
    before = _sentence_before(quote)
    if before is None or any(_overlap(other, quote, before) for other in others):
        return quote
    span = Span(before.start_char, quote.span.end_char)
    return replace(quote, span=span, text=quote.source.hit.chunk.text_at(span))


def _sentence_before(quote: Extract) -> Span | None:
    """The sentence before a quote, in the same paragraph and the same kept passage of its source."""
    at = quote.span.start_char
    kept = next((span for span in quote.source.spans if span.start_char < at < span.end_char), None)
    if kept is None:
        return None
    text = quote.source.hit.chunk.text_at(Span(kept.start_char, at))
    start, end = (sentence_spans(text) or [(0, 0)])[-1]
    sentence = text[start:end]
    whole = sentence.endswith((".", "!", "?")) and "|" not in sentence and len(sentence) <= _MOST_CHARS
    if not whole or not _NEXT_LINE.fullmatch(text, end):
        return None
    return Span(kept.start_char + start, kept.start_char + end)


def _overlap(other: Extract, quote: Extract, before: Span) -> bool:
    return (
        other.source.number == quote.source.number
        and other.span.start_char < before.end_char
        and before.start_char < other.span.end_char
    )
