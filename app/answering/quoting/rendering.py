"""Writes quoted sentences as the text of an answer, each with its footnote, in the format asked for."""

import re
from collections.abc import Sequence

from app.answering.citation import Citation, Pages
from app.answering.formats import Format, json_answer
from app.answering.plain_text import PlainText
from app.answering.quoting.selection import Quote
from retrieval.footnote_numbers import marker as marker_of
from retrieval.footnote_numbers import without_markers
from retrieval.types import Span

_BREAK = re.compile(r"[ \t]*[\r\n\v\f\x85\u2028\u2029]\s*")
_OPENS_SOURCES = ', "sources": ['


def quotation(quotes: Sequence[Quote], *, form: Format, pages: Pages) -> tuple[str, tuple[Citation, ...]]:
    """The text of an answer by quotes, and its footnotes.

    A sentence is shown in one line and without its own markers; its footnote cites it exactly as in the
    document. In JSON (`formats.answer_schema`) a footnote is placed at the source's number in `sources`.

    Args:
        quotes: In reading order, at least one.
        form: "text" removes Markdown from the sentences.
        pages: Page tables of documents with sources across pages.
    """
    assert quotes, "a refusal quotes nothing"
    shown = [_shown(quote.text, form=form) for quote in quotes]
    if form == "json":
        return _json(quotes, " ".join(shown), pages)
    return _marked(quotes, shown, between=" ", pages=pages)


def block_quotation(quotes: Sequence[Quote], *, form: Format, pages: Pages) -> tuple[str, tuple[Citation, ...]]:
    """The text of quotes that follow a model's answer, and its footnotes.

    Each quote is a Markdown block quotation, or in plain text a line in quotation marks. The arguments are those of
    `quotation`, except that `form` must not be "json".
    """
    assert quotes, "there is something to quote"
    assert form != "json", "text after a JSON document would break it"
    shown = [_shown(quote.text, form=form) for quote in quotes]
    if form == "text":
        return _marked(quotes, [f"“{sentence}”" for sentence in shown], between="\n", pages=pages)
    return _marked(quotes, [f"> {sentence}" for sentence in shown], between="\n>\n", pages=pages)


def _marked(
    quotes: Sequence[Quote], shown: Sequence[str], *, between: str, pages: Pages
) -> tuple[str, tuple[Citation, ...]]:
    text, citations = "", []
    for quote, sentence in zip(quotes, shown, strict=True):
        text += f"{between if text else ''}{sentence} "
        marker = marker_of(quote.source.number)
        citations.append(_citation(quote, Span(len(text), len(text) + len(marker)), pages))
        text += marker
    return text, tuple(citations)


def _json(quotes: Sequence[Quote], answer: str, pages: Pages) -> tuple[str, tuple[Citation, ...]]:
    numbers = tuple(dict.fromkeys(quote.source.number for quote in quotes))
    text = json_answer(answer, numbers)
    at = text.rindex(_OPENS_SOURCES) + len(_OPENS_SOURCES)
    places = {}
    for number in numbers:
        places[number] = Span(at, at + len(str(number)))
        at += len(f"{number}, ")
    return text, tuple(_citation(quote, places[quote.source.number], pages) for quote in quotes)


def _shown(text: str, *, form: Format) -> str:
    line = without_markers(_BREAK.sub(" ", text))
    if form == "text":
        writer = PlainText()
        line = writer.feed(line) + writer.finish()
    return line.strip()


def _citation(quote: Quote, marker: Span, pages: Pages) -> Citation:
    """A quote equals the passage it cites, so its support is 1."""
    return Citation.of(quote.source, quote.span, marker=marker, support=1.0, origin="attributed", pages=pages)
