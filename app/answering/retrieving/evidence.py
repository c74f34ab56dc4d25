"""The first stage of abstention: whether the hits of a search are evidence for the question.

`app.answering.abstention` has the other stages.
"""

import re
from collections.abc import Sequence

from app.answering.answers.answer import AbstentionReport
from retrieval.memo import remembered
from retrieval.types import Hit
from retrieval.words import STOP_WORDS, terms

# Chosen on questions against their own and other corpora (docs/EXPERIMENTS.md): a cosine alone separates
# them apart worse (area under ROC .966 against .981), and weights from .3 to .7 alike.
_WORDS = 0.3
# Identifiers and rare names embed poorly, and a purely lexical search has only words: two thirds of them are .3.
_WORDS_ALONE = 0.45
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def with_evidence(question: str, hits: tuple[Hit, ...], *, minimum: float) -> tuple[tuple[Hit, ...], AbstentionReport]:
    """The hits to present, none where `evidence_score` is below `minimum`, and the score as it is reported."""
    score = evidence_score(question, hits)
    return (hits if score >= minimum else ()), AbstentionReport(score=score, threshold=minimum)


def evidence_score(question: str, hits: Sequence[Hit]) -> float:
    """Relevance of the best hit to `question`, in [0, 1]; 0 when there are none.

    The mean of cosine similarity and the share of the question's content words that the passage holds,
    weighted 1 to .3; for a hit of the keyword search alone, .45 of that share.
    """
    asked = _content_terms(question)
    return max((_score(asked, hit) for hit in hits), default=0.0)


def _score(asked: frozenset[str], hit: Hit) -> float:
    share = len(asked & _content_terms(hit.chunk.text)) / len(asked) if asked else 0.0
    cosine = hit.scores.dense
    both = 0.0 if cosine is None else (cosine + _WORDS * share) / (1 + _WORDS)
    return round(min(1.0, max(0.0, both, _WORDS_ALONE * share)), 4)


@remembered
def _content_terms(text: str) -> frozenset[str]:
    """The content words of `text`, and its numbers whole ("1,234.5" is one term, written 1234.5)."""
    words = {term for term in terms(text) - STOP_WORDS if not any(char.isdigit() for char in term)}
    return frozenset(words) | {re.sub(r"[,:](?=\d{3}\b)", "", number) for number in _NUMBER.findall(text)}
