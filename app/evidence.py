"""Whether what was found is about the question at all."""

from collections.abc import Sequence

from app.support import content_terms
from retrieval.types import Hit

_ENOUGH_TERMS = 2 / 3


def is_evidence(question: str, hits: Sequence[Hit], *, least_cosine: float) -> bool:
    """Whether one of the hits is about `question`.

    A passage close enough by meaning, or one that holds most of the question's content words
    (identifiers and rare names embed poorly). A purely lexical search has only the words.
    """
    if any((hit.scores.dense or -1.0) >= least_cosine for hit in hits):
        return True
    terms = content_terms(question)
    return bool(terms) and any(_share(terms, hit) >= _ENOUGH_TERMS for hit in hits)


def _share(terms: frozenset[str], hit: Hit) -> float:
    """Share of `terms` that occur in the hit."""
    return len(terms & content_terms(hit.chunk.text)) / len(terms)
