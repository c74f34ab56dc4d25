"""Scores how much of a question a sentence covers and how likely it is evidence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import exp, log, log1p
from typing import Protocol

from retrieval.words import terms


class Worth(Protocol):
    """A function that scores a sentence for a question, above 0; only proportions matter."""

    def __call__(self, *, rank: int, closeness: float, share: float, best_share: float, tokens: int) -> float:
        """The arguments are those of `odds`."""
        ...


_BIAS, _RANK, _CLOSENESS, _SHARE, _BEST_SHARE, _LENGTH = -7.03, -1.36, 3.97, 5.33, -2.04, 0.56


def term_weights(query: str, texts: Sequence[AbstractSet[str]]) -> dict[str, float]:
    """Weight of each term of `query`: the rarer among `texts`, given by their terms, the heavier, always above 0.

    This is BM25's inverse document frequency (Robertson and Zaragoza 2009, "The probabilistic
    relevance framework", in the form that stays positive) with the retrieved passages as the
    collection: a word they all share does not distinguish their sentences.
    """
    wanted = terms(query)
    found = Counter(term for text in texts for term in text & wanted)
    return {term: log1p((len(texts) - found[term] + 0.5) / (found[term] + 0.5)) for term in wanted}


def overlap(weights: Mapping[str, float], text: AbstractSet[str]) -> float:
    """Sum of the weights of the query terms among a text's terms; 0 if there is none."""
    # Sorted, so that equal sets of terms add up to equal scores.
    return sum(weights[term] for term in sorted(text & weights.keys()))


def odds(*, rank: int, closeness: float, share: float, best_share: float, tokens: int) -> float:
    """Odds in (0, 1) that a sentence holds evidence: a logistic regression of five features.

    Its weights were fitted to whether a sentence of the eight best hits meets a gold span, over 150
    questions of Natural Questions and 100 of HotpotQA, both sets counting the same.

    Args:
        rank: Of its hit, 0 is best.
        closeness: Its hit's fused score as a share of the best hit's, in [0, 1].
        share: Share of the question's term weight that the sentence covers, in [0, 1].
        best_share: The largest share of any sentence of its hit, which also favours sentences near a match.
        tokens: Tokens of the sentence; a longer one contains more.
    """
    logit = (
        _BIAS
        + _RANK * log1p(rank)
        + _CLOSENESS * closeness
        + _SHARE * share
        + _BEST_SHARE * best_share
        + _LENGTH * log(1 + tokens)
    )
    return 1 / (1 + exp(-logit))
