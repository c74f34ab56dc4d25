"""Computes how far a passage supports a claim: features of the two texts, and logistic regressions over them.

There is one regression for sentences and one for fragments (answers of a few words, read with their question), each
without and with the embedder's cosine. `python -m app.tuning.verifier.fit` fits them on scifact-train and on claims
made from squadshift-new-wiki, nq-gold, pubmedqa-train and tatqa-dev; docs/EXPERIMENTS.md has the results. Rules
(`forbids`) rule out a passage that lacks a number or a name of the claim, or contradicts it, whatever its features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log

from app.answering.languages.details import lacks_detail
from app.answering.languages.question_kind import kind_checked
from app.answering.languages.statement import Statement
from app.answering.verification.contradiction import contradicts

FORBIDDEN = 0.3
"""Most support of a passage that `forbids` rules out: a number or name is missing, or it contradicts."""

QUOTED = 0.9
"""Least support of a claim all of whose words stand in one sentence in the same order: the claim only shortens it."""

DECIDED = 0.75
"""Lexical support from which no model is called. Chosen to save calls, not fitted."""

# Intercept, then a weight for each of `sentence_values` or `fragment_values`, the cosine's last.
# Shares of the same words are correlated, so a single weight, or its sign, cannot be interpreted.
SENTENCE = (0.07, -0.15, 0.23, 2.59, -0.54)
SENTENCE_EMBEDDED = (-1.33, -1.51, 0.10, 1.22, -0.64, 4.53)
FRAGMENT = (-4.32, 2.79, 2.06, 0.85, -0.31, 2.29, 1.94, 0.71)
FRAGMENT_EMBEDDED = (-4.47, 2.20, 2.15, 0.63, -0.46, 2.23, 1.40, 0.80, 1.81)


_NEAR = 8  # content words on either side of an answer
_SHORT = 4
"""Content words up to which an answer is a fragment that only its question completes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer in parsed form, to be compared with passages.

    Attributes:
        text: The sentence, without markers.
        statement: The sentence taken apart.
        question: The question taken apart, where the sentence is a fragment that only its question completes; else
            None.
        model_text: The text for models: the question, where there is one, and the sentence.
    """

    text: str
    statement: Statement
    question: Statement | None
    model_text: str


@dataclass(frozen=True, slots=True)
class Lexical:
    """The lexical features of a claim and a passage. Shares are in [0, 1] and weighted by the rarity of words.

    Attributes:
        coverage: Share of the claim's content words that the passage holds.
        order: Share of the claim's content words in the longest common subsequence with the passage; not weighted.
        pairs: Share of the claim's neighbouring words that are at most three words apart in the passage; not weighted.
        precision: Share of the passage's content words that the claim holds.
        length: The logarithm of one plus the number of the claim's content words.
        asked: Of a fragment: share of the question that the passage, or its headings, hold.
        lead: Of a fragment: `asked` minus the largest `asked` of the source's passages, at most 0.
        near: Of a fragment: share of the question that is within a few words of the answer.
        kind: Of a fragment: 1 where the answer is of the kind asked for, a name or a number, 0 where it is not, 0.5
            where the rules cannot tell.
        fragment: Whether the claim is a fragment.
    """

    coverage: float
    order: float
    pairs: float
    precision: float
    length: float
    asked: float = 0.0
    lead: float = 0.0
    near: float = 0.0
    kind: float = 0.0
    fragment: bool = False


def is_fragment(statement: Statement) -> bool:
    """Whether a statement is too short to be understood without its question."""
    return len(statement.terms) <= _SHORT


def compare(
    claim: Claim, evidence: Statement, *, around: frozenset[str], weights: Mapping[str, float], most_asked: float = 0.0
) -> Lexical:
    """The features of a claim and a passage.

    Args:
        claim: A sentence of the answer.
        evidence: A passage.
        around: Stems of the text above the passage: headings, the file's name.
        weights: Rarity of stems among the passages, above 0; a stem that is not in it counts as the rarest.
        most_asked: The largest `asked_share` among the passages of its source.
    """
    said = claim.statement
    shared = said.terms & evidence.terms
    neighbours = set(pairwise(said.stems))
    close = {pair for gap in (1, 2, 3) for pair in zip(evidence.stems, evidence.stems[gap:], strict=False)}
    seen = Lexical(
        coverage=_mass(shared, weights) / _mass(said.terms, weights) if said.terms else 0.0,
        order=_longest(said.stems, evidence.stems) / max(1, len(said.stems)),
        pairs=len(neighbours & close) / len(neighbours) if neighbours else float(bool(shared)),
        precision=_mass(shared, weights) / _mass(evidence.terms, weights) if evidence.terms else 0.0,
        length=log(1 + len(said.terms)),
    )
    if claim.question is None:
        return seen
    asked = asked_share(claim, evidence, around=around, weights=weights)
    return replace(
        seen,
        asked=asked,
        lead=asked - max(asked, most_asked),
        near=_near(claim.question.terms - said.terms, said.terms, evidence, weights),
        kind=_kind(claim.question, said, claim.text),
        fragment=True,
    )


def asked_share(claim: Claim, evidence: Statement, *, around: frozenset[str], weights: Mapping[str, float]) -> float:
    """Share of a fragment's question that a passage and the text above it hold, in [0, 1]; 0 for a sentence."""
    if claim.question is None:
        return 0.0
    asked = claim.question.terms - claim.statement.terms
    return _mass(asked & (evidence.terms | around), weights) / _mass(asked, weights) if asked else 0.0


def _mass(stems: frozenset[str], weights: Mapping[str, float]) -> float:
    rarest = 0.0 if stems <= weights.keys() else max(weights.values(), default=1.0)
    return sum(weights.get(stem, rarest) for stem in sorted(stems))


def _near(asked: frozenset[str], said: frozenset[str], evidence: Statement, weights: Mapping[str, float]) -> float:
    """Share of the question within `_NEAR` words of the answer."""
    if not asked:
        return 0.0
    stems = evidence.stems
    beside: set[str] = set()
    for at, word in enumerate(stems):
        if word in said:
            beside.update(stems[max(0, at - _NEAR) : at + _NEAR + 1])
    return _mass(asked & beside, weights) / _mass(asked, weights)


def _kind(asked: Statement, said: Statement, text: str) -> float:
    """Whether an answer is of the kind its question asks for."""
    match kind_checked(asked.words):
        case "number":
            return float(bool(said.numbers or said.months))
        case "name":
            return float(any(char.isupper() for char in text))
        case None:
            return 0.5


def forbids(claim: Statement, evidence: Statement, *, around: frozenset[str]) -> bool:
    """Whether a rule keeps the evidence from counting as support: it lacks a detail, or contradicts."""
    return lacks_detail(claim, evidence, around=around) or contradicts(claim, evidence)


def _longest(claim: tuple[str, ...], evidence: tuple[str, ...]) -> int:
    """Length of the longest common subsequence (Hirschberg 1975; as in ROUGE-L, Lin 2004)."""
    row, held = [0] * (len(evidence) + 1), frozenset(evidence)
    for word in claim:
        if word not in held:
            continue  # it makes no subsequence longer
        before = 0
        for at, other in enumerate(evidence, start=1):
            above = row[at]
            row[at] = before + 1 if word == other else max(above, row[at - 1])
            before = above
    return row[-1]


def sentence_values(seen: Lexical) -> tuple[float, ...]:
    """The inputs of the regression for sentences."""
    return seen.coverage, seen.order, seen.precision, seen.length


def fragment_values(seen: Lexical) -> tuple[float, ...]:
    """The inputs of the regression for fragments."""
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
