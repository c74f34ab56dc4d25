"""How much of a question a sentence speaks about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log1p

from retrieval.words import terms


def term_weights(query: str, texts: Sequence[str]) -> dict[str, float]:
    """Weight of each term of `query`: the rarer among `texts`, the heavier, always above 0.

    This is BM25's inverse document frequency (Robertson and Zaragoza 2009, "The probabilistic
    relevance framework", in the form that stays positive) with the retrieved passages as the
    collection: a word they all share does not tell their sentences apart.
    """
    wanted = terms(query)
    found = Counter(term for text in texts for term in terms(text) & wanted)
    return {term: log1p((len(texts) - found[term] + 0.5) / (found[term] + 0.5)) for term in wanted}


def overlap(weights: Mapping[str, float], text: str) -> float:
    """Sum of the weights of the query terms that occur in `text`, each once; 0 if none does."""
    # Sorted, so that equal sets of terms add up to equal scores.
    return sum(weights[term] for term in sorted(terms(text) & weights.keys()))
