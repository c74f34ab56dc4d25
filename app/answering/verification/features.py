"""What can be seen of a claim and its evidence side by side, in numbers, and what forbids to call it support."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log

from app.answering.question_kind import kind_checked
from app.answering.verification.contradiction import contradicts
from app.answering.verification.statement import Number, Statement
from retrieval.words import STOP_WORDS

_LONGEST_ACRONYM = 6
_NEAR = 8  # content words on either side of an answer
_SHORT = 4
"""Content words up to which an answer is a fragment that only its question completes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, and the question it answers where it is too short to say so itself.

    `whole` is what models read: the question, where there is one, and the text.
    """

    text: str
    said: Statement
    asked: Statement | None
    whole: str


@dataclass(frozen=True, slots=True)
class Lexical:
    """What words say of a claim beside a passage; shares in [0, 1].

    `coverage` is how much of the claim the passage holds, weighed by rarity; `order` the longest run of
    the claim's words that it has in the same order, gaps allowed; `pairs` the share of neighbours that
    stand together there too; `precision` how much of the passage the claim speaks about. Of a fragment:
    `asked` is how much of its question the passage or what stands above it holds, `lead` how much less
    that is than the source's best (at most 0), `near` how much of the question stands beside the
    answer, and `kind` whether the answer is what the question asks for, a name or a number (1), is not
    (0), or cannot be told (0.5). `length` is the logarithm of one plus the claim's words.
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


def is_fragment(said: Statement) -> bool:
    """Whether a statement is too short to be understood without its question."""
    return len(said.terms) <= _SHORT


def compare(
    claim: Claim, evidence: Statement, *, around: frozenset[str], weights: Mapping[str, float], most_asked: float = 0.0
) -> Lexical:
    """What both share.

    Args:
        claim: What the answer says.
        evidence: A passage.
        around: Stems of what stands above the passage: headings, the file's name.
        weights: Rarity of stems among the passages, above 0; what is not in it counts as the rarest.
        most_asked: The largest `asked_share` among the passages of its source.
    """
    said = claim.said
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
    if claim.asked is None:
        return seen
    asked = asked_share(claim, evidence, around=around, weights=weights)
    return replace(
        seen,
        asked=asked,
        lead=asked - max(asked, most_asked),
        near=_near(claim.asked.terms - said.terms, said.terms, evidence, weights),
        kind=_kind(claim.asked, said, claim.text),
        fragment=True,
    )


def asked_share(claim: Claim, evidence: Statement, *, around: frozenset[str], weights: Mapping[str, float]) -> float:
    """How much of a fragment's question a passage and what stands above it hold, in [0, 1]; 0 of a sentence's."""
    if claim.asked is None:
        return 0.0
    asked = claim.asked.terms - claim.said.terms
    return _mass(asked & (evidence.terms | around), weights) / _mass(asked, weights) if asked else 0.0


def _mass(stems: frozenset[str], weights: Mapping[str, float]) -> float:
    rarest = max(weights.values(), default=1.0)
    return sum(weights.get(stem, rarest) for stem in sorted(stems))


def _near(asked: frozenset[str], said: frozenset[str], evidence: Statement, weights: Mapping[str, float]) -> float:
    """How much of the question stands within a few words of the answer."""
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


def lacks_detail(claim: Statement, evidence: Statement, *, around: frozenset[str]) -> bool:
    """Whether a number, a month or a name of the claim is not in its evidence.

    Numbers and months must be in the passage itself; a name may also stand above it.
    """
    if not claim.months <= evidence.months or any(
        not number.loose and not _holds(evidence, number) for number in claim.numbers
    ):
        return True
    words = frozenset(word.removesuffix("'s") for word in evidence.words) | around
    return any(
        name not in words and not _inflected(name, words) and not _spelt_out(name, evidence.words)
        for name in claim.names
    )


def forbids(claim: Statement, evidence: Statement, *, around: frozenset[str]) -> bool:
    """Whether the evidence must not count as support, however much it shares with the claim."""
    return lacks_detail(claim, evidence, around=around) or contradicts(claim, evidence)


def _holds(evidence: Statement, number: Number) -> bool:
    for other in evidence.numbers:
        if number.percent and not (other.percent or evidence.percent):
            continue
        if other.value == number.value:
            return True
        if number.bare == other.bare and other.scale == 1 and number.scale in evidence.scales:
            return True  # "in millions" stands in the head of the table
    return False


def _inflected(name: str, words: frozenset[str]) -> bool:
    """Whether a word is the name with a short ending, or the other way round: "Oslo" and "Oslos"."""
    return len(name) >= 4 and any(
        abs(len(word) - len(name)) <= 2 and (word.startswith(name) or (len(word) >= 4 and name.startswith(word)))
        for word in words
    )


def _spelt_out(name: str, words: tuple[str, ...]) -> bool:
    """Whether neighbouring words begin with the letters of an acronym: "IPCC", with or without "on"."""
    if not 2 <= len(name) <= _LONGEST_ACRONYM or not name.isalpha():
        return False
    return any(
        name in "".join(word[0] for word in words if word[0].isalpha() and not (bare and word in STOP_WORDS))
        for bare in (False, True)
    )


def _longest(claim: tuple[str, ...], evidence: tuple[str, ...]) -> int:
    """Length of the longest common subsequence (Hirschberg 1975; as in ROUGE-L, Lin 2004)."""
    row = [0] * (len(evidence) + 1)
    for word in claim:
        before = 0
        for at, other in enumerate(evidence, start=1):
            above = row[at]
            row[at] = before + 1 if word == other else max(above, row[at - 1])
            before = above
    return row[-1]
