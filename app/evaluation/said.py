"""An answer in the form that is scored: words without citation markers, and the cited passages."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.answers.answer import Answer
from app.answering.answers.parts import QuotePart
from retrieval.types import Span


@dataclass(frozen=True, slots=True)
class Footnote:
    """A cited passage: `text` at `span` of a document's canonical text, and whether verification confirmed it."""

    document_id: str
    span: Span
    text: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Said:
    """An answer, or a refusal when `answered` is false.

    Attributes:
        answered: False for a refusal, and where the nearest passages are shown as such.
        words: The text without citation markers; of an answer by quotes the quoted texts.
        footnotes: The cited passages.
        first: What is read first of an answer by quotes: its lead, else the first quote; else the same as `words`.
        unsure: Whether the nearest passages are shown, which may not answer.
    """

    answered: bool
    words: str
    footnotes: tuple[Footnote, ...]
    first: str = ""
    unsure: bool = False


def said_in(answer: Answer) -> Said:
    """Converts the application's answer."""
    return Said(
        answered=answer.reason is None,
        words=words_of(answer),
        first=first_of(answer),
        unsure=answer.reason == "unsure",
        footnotes=tuple(
            Footnote(found.document_id, Span(found.start_char, found.end_char), found.cited_text, found.verified)
            for found in answer.citations
        ),
    )


def words_of(answer: Answer) -> str:
    """The answer's text without its citation markers, and without quotes behind it where a model has answered.

    Of an answer by quotes these are the quotes.
    """
    if _by_quotes(answer):
        return "\n".join(_text(answer, part.quoted) for part in answer.quotes)
    end = max((part.end_char for part in answer.parts if not isinstance(part, QuotePart)), default=0)
    pieces, at = [], 0
    for citation in sorted(answer.citations, key=lambda citation: citation.answer_start):
        if citation.answer_start < end:
            pieces.append(answer.text[at : citation.answer_start])
            at = citation.answer_end
    return "".join([*pieces, answer.text[at:end]])


def first_of(answer: Answer) -> str:
    """The lead of an answer by quotes, else its first quote; the words of any other answer."""
    if not _by_quotes(answer):
        return words_of(answer)
    return _text(answer, answer.lead or answer.quotes[0].quoted)


def _by_quotes(answer: Answer) -> bool:
    return bool(answer.quotes) and not answer.usage.answer_tokens


def _text(answer: Answer, span: Span) -> str:
    return answer.text[span.start_char : span.end_char]


def nothing_said() -> Said:
    """An empty refusal."""
    return Said(answered=False, words="", footnotes=())


def quoted(quotes: Sequence[tuple[str, Span, str]]) -> Said:
    """Joins quotes (document id, span, text) to one answer; no quotes are a refusal.

    A quote supports itself.
    """
    return Said(
        answered=bool(quotes),
        words=" ".join(text for _, _, text in quotes),
        first=quotes[0][2] if quotes else "",
        footnotes=tuple(Footnote(document, span, text, True) for document, span, text in quotes),
    )
