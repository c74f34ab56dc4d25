"""From what is seen of a claim and its evidence to support in [0, 1], and the support that verifies.

Logistic regressions, one for sentences and one for fragments (answers of a few words beside their question), each
without and with the embedder's cosine. `python -m app.tuning.verifier.fit` fits them on scifact-train and on claims
made from squadshift-new-wiki, nq-gold, pubmedqa-train and tatqa-dev; docs/EXPERIMENTS.md has what came of it.
"""

from math import exp

from app.answering.verification.features import Lexical

THRESHOLD = 0.6
"""Least support that counts as verified: the least in steps of 0.05 at which, on the documents held apart and over
the sets, 85 in 100 verified sentences are true. It is never lowered until something matches."""

FORBIDDEN = 0.3
"""Most support of a passage that the rules forbid: a number or a name is missing, or it says the opposite."""

QUOTED = 0.9
"""Least support of a claim all of whose words one sentence has in the same order: it was shortened, nothing more."""

DECIDED = 0.75
"""Lexical support from which no model is asked. Chosen to save calls, not fitted."""

# Intercept, then a weight for each of `sentence_values` or `fragment_values`, the cosine's last where it is known.
# Shares of the same words are correlated, so a single weight, and its sign, means little by itself.
SENTENCE = (0.07, -0.15, 0.23, 2.59, -0.54)
SENTENCE_EMBEDDED = (-1.33, -1.51, 0.10, 1.22, -0.64, 4.53)
FRAGMENT = (-4.32, 2.79, 2.06, 0.85, -0.31, 2.29, 1.94, 0.71)
FRAGMENT_EMBEDDED = (-4.47, 2.20, 2.15, 0.63, -0.46, 2.23, 1.40, 0.80, 1.81)


def sentence_values(seen: Lexical) -> tuple[float, ...]:
    """What the regression of sentences reads."""
    return seen.coverage, seen.order, seen.precision, seen.length


def fragment_values(seen: Lexical) -> tuple[float, ...]:
    """What the regression of fragments reads."""
    return seen.coverage, seen.precision, seen.length, seen.asked, seen.lead, seen.near, seen.kind


def lexical_support(seen: Lexical) -> float:
    """Support in [0, 1] by words alone."""
    return _logistic(FRAGMENT, fragment_values(seen)) if seen.fragment else _logistic(SENTENCE, sentence_values(seen))


def semantic_support(seen: Lexical, *, cosine: float) -> float:
    """Support in [0, 1] by words and the cosine similarity of claim and passage, in [-1, 1]."""
    if seen.fragment:
        return _logistic(FRAGMENT_EMBEDDED, (*fragment_values(seen), cosine))
    return _logistic(SENTENCE_EMBEDDED, (*sentence_values(seen), cosine))


def _logistic(weights: tuple[float, ...], values: tuple[float, ...]) -> float:
    logit = weights[0] + sum(weight * value for weight, value in zip(weights[1:], values, strict=True))
    return 1 / (1 + exp(-logit)) if logit >= 0 else 1 - 1 / (1 + exp(logit))
