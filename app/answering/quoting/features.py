"""Computes the features by which a sentence of the sources is scored as an answer to a question.

`retrieval.relevance` weighs sentences to decide what a model reads. These features select the few that are shown as
the answer, so they also compare the words and the kind of answer that is asked for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.question_kind import Kind, kind_asked
from retrieval.relevance import overlap, term_weights
from retrieval.sentences import unit_spans
from retrieval.types import Source, Span
from retrieval.words import terms

_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|"
    r"million|billion|half|once|twice|dozen|several)\b",
    re.I,
)
_TIME = re.compile(
    r"\b\d{3,4}s?\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|monday|"
    r"tuesday|wednesday|thursday|friday|saturday|sunday|century|centuries|spring|summer|autumn|winter|year|month|"
    r"annually|bc|ad|today)\b",
    re.I,
)
_NAME = re.compile(r"(?<!^)\b[^\W\d_a-z][\w'’.-]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a source: `text` is exactly the document version's characters at `span`."""

    source: Source
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a sentence and a question.

    Attributes:
        rank: Rank of the sentence's source in the search, 0 is best.
        share: Share of the question's term weight that the sentence holds, in [0, 1].
        lead: How far `share` lies behind the largest of any sentence, in [0, 1].
        fits: 1 when the sentence holds the kind of answer that is asked for, -1 when it does not, 0 when no kind is
            asked for.
    """

    rank: int
    share: float
    lead: float
    fits: float


def sentences_of(sources: Sequence[Source]) -> tuple[Sentence, ...]:
    """The sentences that the sources show, in reading order, without the headings of their own chunk."""
    found = []
    for source in sources:
        chunk = source.hit.chunk
        headings = {heading.casefold() for heading in chunk.heading_path}
        for kept in source.spans:
            shown = chunk.text[kept.start_char - chunk.start_char : kept.end_char - chunk.start_char]
            for start, end in unit_spans(shown):
                text = shown[start:end]
                if text.lstrip("#").strip().casefold() not in headings:
                    found.append(Sentence(source, Span(kept.start_char + start, kept.start_char + end), text))
    return tuple(found)


def features_of(question: str, sentences: Sequence[Sentence]) -> list[Features]:
    """The features of each sentence, in the order of `sentences`."""
    found = [terms(sentence.text) for sentence in sentences]
    weights = term_weights(question, found)
    total = sum(weights.values()) or 1.0
    shares = [overlap(weights, of_sentence) / total for of_sentence in found]
    best = max(shares, default=0.0)
    numbers = {sentence.source.number: sentence.source for sentence in sentences}
    ranks = _ranks(list(numbers.values()))
    kind, asked = kind_asked(question), question.casefold()
    return [
        Features(
            rank=ranks[sentence.source.number],
            share=share,
            lead=best - share,
            fits=0.0 if kind is None else 1.0 if _holds(kind, sentence.text, asked) else -1.0,
        )
        for sentence, share in zip(sentences, shares, strict=True)
    ]


def _ranks(sources: Sequence[Source]) -> dict[int, int]:
    """Rank of each source, by its number: best score of the reranker first, else of the search."""

    def strength(source: Source) -> tuple[float, float]:
        scores = source.hit.scores
        return (scores.rerank if scores.rerank is not None else float("-inf"), scores.fused)

    ordered = sorted(sources, key=strength, reverse=True)
    return {source.number: rank for rank, source in enumerate(ordered)}


def _holds(kind: Kind, text: str, asked: str) -> bool:
    """Whether a sentence holds a number, a time, or a name that the question does not hold itself."""
    if kind == "name":
        return any(match.group().casefold().rstrip(".'’") not in asked for match in _NAME.finditer(text))
    return bool((_NUMBER if kind == "number" else _TIME).search(text))
