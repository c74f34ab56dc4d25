"""Whether what was found is about the question at all."""

from collections.abc import Sequence

from app.support import content_terms
from retrieval.types import Hit

# Chosen on questions against their own corpus and against others' (docs/EXPERIMENTS.md): a cosine alone tells
# them apart worse (area under ROC .966 against .981), and weights from .3 to .7 alike.
_WORDS = 0.3
# Identifiers and rare names embed poorly, and a purely lexical search has only words: two thirds of them are .3.
_WORDS_ALONE = 0.45


def evidence_score(question: str, hits: Sequence[Hit]) -> float:
    """How much the best of the hits is about `question`, in [0, 1]; 0 when there are none.

    The mean of cosine similarity and the share of the question's content words that the passage holds,
    weighted 1 to .3; of what only words found, .45 of that share.
    """
    terms = content_terms(question)
    return max((_score(terms, hit) for hit in hits), default=0.0)


def _score(terms: frozenset[str], hit: Hit) -> float:
    share = len(terms & content_terms(hit.chunk.text)) / len(terms) if terms else 0.0
    cosine = hit.scores.dense
    both = 0.0 if cosine is None else (cosine + _WORDS * share) / (1 + _WORDS)
    return round(min(1.0, max(0.0, both, _WORDS_ALONE * share)), 4)
