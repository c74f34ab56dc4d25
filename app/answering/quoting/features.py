"""Computes the features by which a quotable unit of the sources is scored as an answer to a question.

`retrieval.relevance` weighs sentences to decide what a model reads. These features select the few that are shown as
the answer, so they also compare the kind of answer that is asked for, and the words that the span reader found.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.languages.question_kind import Kind, kind_asked
from app.answering.quoting.candidates import Candidate, passage_text
from retrieval.relevance import overlap, term_weights
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
class ReadPiece:
    """What the span reader found in a piece of a candidate: its best words, in the document, and their log-odds."""

    words: Span
    margin: float


@dataclass(frozen=True, slots=True)
class Read:
    """What the span reader found in a candidate: log-odds of its best words, its evidence, the words, and its pieces.

    A piece that holds nothing to point at is not among `pieces`.
    """

    margin: float = 0.0
    evidence: float = 0.0
    words: Span | None = None
    pieces: tuple[ReadPiece, ...] = ()


UNREAD = Read()
"""For candidates where no reader has read."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a candidate and a question that need no embedding of the candidate.

    Attributes:
        rank: Rank of the candidate's source in the search, 0 is best.
        closeness: Cosine similarity of the source's best hit and the question, 0 for a hit of the keyword search alone.
        share: Share of the question's term weight that the candidate holds, in [0, 1].
        covered: As `share`, of the whole passage around the candidate, its headings and its document's title.
        lead: How far `share` lies behind the largest of any candidate, in [0, 1].
        fits: 1 when the candidate holds the kind of answer that is asked for, -1 when it does not, 0 when no kind is
            asked for.
        heading: 1 for a heading without the text below it, else 0.
        margin: Log-odds of the candidate's best words against "no answer", by the span reader; 0 where it did not read.
        margin_lead: How far `margin` lies behind the largest of any candidate, at least 0.
        evidence: The largest log-odds of a token of the candidate to be evidence, by the span reader; 0 where it did
            not read.
        evidence_lead: How far `evidence` lies behind the largest of any candidate, at least 0.
    """

    rank: int
    closeness: float
    share: float
    covered: float
    lead: float
    fits: float
    heading: float = 0.0
    margin: float = 0.0
    margin_lead: float = 0.0
    evidence: float = 0.0
    evidence_lead: float = 0.0


def features_of(question: str, candidates: Sequence[Candidate], read: Sequence[Read] | None = None) -> list[Features]:
    """The features of each candidate, in the order of `candidates`; `read` is the span reader's, if it read."""
    found = [terms(candidate.core_text) for candidate in candidates]
    weights = term_weights(question, found)
    total = sum(weights.values()) or 1.0
    shares = [overlap(weights, of_candidate) / total for of_candidate in found]
    best = max(shares, default=0.0)
    passages = [passage_text(candidate) for candidate in candidates]
    read = [UNREAD] * len(candidates) if read is None else read
    largest = max((one.margin for one in read), default=0.0)
    most_evidence = max((one.evidence for one in read), default=0.0)
    numbers = {candidate.source.number: candidate.source for candidate in candidates}
    ranks = _ranks(list(numbers.values()))
    kind, asked = kind_asked(question), question.casefold()
    return [
        Features(
            rank=ranks[candidate.source.number],
            closeness=candidate.source.hit.scores.dense or 0.0,
            share=share,
            covered=overlap(weights, terms(passage)) / total,
            lead=best - share,
            fits=0.0 if kind is None else 1.0 if _holds(kind, candidate.core_text, asked) else -1.0,
            heading=float(candidate.heading),
            margin=one.margin,
            margin_lead=largest - one.margin,
            evidence=one.evidence,
            evidence_lead=most_evidence - one.evidence,
        )
        for candidate, share, passage, one in zip(candidates, shares, passages, read, strict=True)
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
