"""An answer in the form that is scored: words without citation markers, and the cited passages."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.answer import Answer
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
    """An answer, or a refusal when `answered` is false; `words` are its text without citation markers."""

    answered: bool
    words: str
    footnotes: tuple[Footnote, ...]


def said_in(answer: Answer) -> Said:
    """Converts the application's answer."""
    return Said(
        answered=answer.answered,
        words=words_of(answer),
        footnotes=tuple(
            Footnote(found.document_id, Span(found.start_char, found.end_char), found.cited_text, found.verified)
            for found in answer.citations
        ),
    )


def words_of(answer: Answer) -> str:
    """The answer's text without its citation markers, and without quotes behind it where a model has answered."""
    end = min((span.start_char for span in answer.quoted if span.start_char), default=len(answer.text))
    pieces, at = [], 0
    for citation in sorted(answer.citations, key=lambda citation: citation.answer_start):
        if citation.answer_start < end:
            pieces.append(answer.text[at : citation.answer_start])
            at = citation.answer_end
    return "".join([*pieces, answer.text[at:end]])


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
        footnotes=tuple(Footnote(document, span, text, True) for document, span, text in quotes),
    )
