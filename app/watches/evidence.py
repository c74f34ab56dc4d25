"""Compares the evidence of two answers to one question: the cited passages, not the wording of either answer.

A passage has a counterpart in the other answer where both have the same words, or share most of their words and, by the
rules that verify answers (`app.answering.verification`), neither lacks a number, a date or a name of the other or
contradicts it. The evidence differs where a passage has no counterpart, or only one of the answers answers. Of two
answers that do not answer, and quote the nearest passages, only a changed wording counts: others may be near each time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from app.answering.languages.details import lacks_month, lacks_name, lacks_number
from app.answering.languages.statement import Statement, parse_statement
from app.answering.verification.contradiction import contradicts
from app.answering.verification.support import forbids

Kind: TypeAlias = Literal["answered", "passage", "number", "date", "name", "negation"]
Cited: TypeAlias = Mapping[str, Any]
"""A stored citation, in JSON types."""

LEAST_SHARED = 0.5
"""Least share of their content words, of both together, that two wordings of one passage have in common."""

_NOWHERE = frozenset[str]()


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    """The evidence of an answer: `citations` are its footnotes, or those of the nearest passages if not `answered`."""

    answered: bool = False
    citations: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceDifference:
    """One difference between the evidence of two answers.

    Attributes:
        kinds: `answered`: only one of them answers. `passage`: a passage is cited by one of them alone. `number`,
            `date`, `name`, `negation`: what differs between two wordings of a passage.
        before: The citation of the earlier answer; None where it has none.
        after: That of the later one.
    """

    kinds: tuple[Kind, ...]
    before: Cited | None = None
    after: Cited | None = None


@dataclass(frozen=True, slots=True)
class _Passage:
    """A cited passage taken apart; passages with equal `words` say the same."""

    citation: Cited
    statement: Statement
    words: tuple[str, ...]

    @classmethod
    def of(cls, citation: Cited) -> "_Passage":
        statement = parse_statement(str(citation.get("cited_text", "")))
        return cls(citation, statement, tuple(word for word in statement.words if word[0].isalnum() or word == "%"))


def differences(before: AnswerEvidence, after: AnswerEvidence) -> tuple[EvidenceDifference, ...]:
    """The differences between the evidence of two answers, the earlier first; wordings of one passage come first.

    Example:
        >>> fee = {"document_id": "doc_1", "cited_text": "The fee is 30 euros a month."}
        >>> raised = {**fee, "cited_text": "The fee is 35 euros a month."}
        >>> [one.kinds for one in differences(AnswerEvidence(True, (fee,)), AnswerEvidence(True, (raised,)))]
        [('number',)]
    """
    old, new = _passages(before), _passages(after)
    gone = [one for one in old if not any(_says_the_same(one, other) for other in new)]
    come = [one for one in new if not any(_says_the_same(one, other) for other in old)]
    flipped = (EvidenceDifference(("answered",)),) if before.answered != after.answered else ()
    pairs = _paired(gone, come)
    reworded = tuple(EvidenceDifference(_kinds(one, other), one.citation, other.citation) for one, other in pairs)
    if not before.answered and not after.answered:
        return reworded
    paired = {id(one) for pair in pairs for one in pair}
    return (
        *flipped,
        *reworded,
        *(EvidenceDifference(("passage",), one.citation, None) for one in gone if id(one) not in paired),
        *(EvidenceDifference(("passage",), None, one.citation) for one in come if id(one) not in paired),
    )


def _passages(evidence: AnswerEvidence) -> list[_Passage]:
    """The passages that are cited, each wording of a document once."""
    found = map(_Passage.of, reversed(evidence.citations))
    return list({(one.citation.get("document_id"), one.words): one for one in found}.values())[::-1]


def _says_the_same(one: _Passage, other: _Passage) -> bool:
    if one.words == other.words:
        return True
    here, there = one.statement, other.statement
    return (
        _shared(here, there) >= LEAST_SHARED
        and not forbids(here, there, around=_NOWHERE)
        and not forbids(there, here, around=_NOWHERE)
    )


def _shared(here: Statement, there: Statement) -> float:
    """The share of content words that two passages have in common, in [0, 1] (Jaccard 1912); numbers are none."""
    one, other = ({term for term in each.terms if not term[0].isdecimal()} for each in (here, there))
    return len(one & other) / len(one | other) if one or other else 0.0


def _paired(gone: Sequence[_Passage], come: Sequence[_Passage]) -> list[tuple[_Passage, _Passage]]:
    """Pairs that are two wordings of one passage: the most alike first, each passage once, those of one document."""
    alike = sorted(
        (
            (_shared(one.statement, other.statement), first, second)
            for first, one in enumerate(gone)
            for second, other in enumerate(come)
            if one.citation.get("document_id") == other.citation.get("document_id")
        ),
        key=lambda found: (-found[0], found[1], found[2]),
    )
    pairs: list[tuple[int, int]] = []
    for shared, first, second in alike:
        taken = any(first == one or second == other for one, other in pairs)
        if shared >= LEAST_SHARED and not taken and _kinds(gone[first], come[second]) != ("passage",):
            pairs.append((first, second))
    return [(gone[first], come[second]) for first, second in sorted(pairs)]


def _kinds(one: _Passage, other: _Passage) -> tuple[Kind, ...]:
    """The kinds of difference between two wordings; `passage` where the rules name nothing."""
    here, there = one.statement, other.statement
    found: tuple[tuple[Kind, bool], ...] = (
        ("number", lacks_number(here, there) or lacks_number(there, here)),
        ("date", lacks_month(here, there) or lacks_month(there, here)),
        ("name", lacks_name(here, there, around=_NOWHERE) or lacks_name(there, here, around=_NOWHERE)),
        ("negation", contradicts(here, there) or contradicts(there, here)),
    )
    return tuple(kind for kind, differs in found if differs) or ("passage",)
