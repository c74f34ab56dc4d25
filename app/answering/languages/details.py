"""Tells which details of a claim are not in its evidence: a number, a month, a name."""

from app.answering.languages.statement import Number, Statement
from retrieval.words import STOP_WORDS

_LONGEST_ACRONYM = 6


def lacks_detail(claim: Statement, evidence: Statement, *, around: frozenset[str]) -> bool:
    """Whether a number, a month or a name of the claim is not in its evidence.

    Numbers and months must be in the passage itself; a name may also be in its headings.
    """
    return lacks_month(claim, evidence) or lacks_number(claim, evidence) or lacks_name(claim, evidence, around=around)


def lacks_month(claim: Statement, evidence: Statement) -> bool:
    """Whether a month of the claim is not in its evidence."""
    return not claim.months <= evidence.months


def lacks_number(claim: Statement, evidence: Statement) -> bool:
    """Whether a number of the claim that is surely one is not in its evidence."""
    return any(not number.loose and not _holds(evidence, number) for number in claim.numbers)


def lacks_name(claim: Statement, evidence: Statement, *, around: frozenset[str]) -> bool:
    """Whether a name of the claim is neither in its evidence nor among the words `around` it."""
    words = frozenset(word.removesuffix("'s") for word in evidence.words) | around
    return any(
        name not in words and not _inflected(name, words) and not _spelt_out(name, evidence.words)
        for name in claim.names
    )


def _holds(evidence: Statement, number: Number) -> bool:
    for other in evidence.numbers:
        if number.percent and not (other.percent or evidence.percent):
            continue
        if other.value == number.value:
            return True
        if number.bare == other.bare and other.scale == 1 and number.scale in evidence.scales:
            return True  # "in millions" is in the head of the table
    return False


def _inflected(name: str, words: frozenset[str]) -> bool:
    """Whether a word is the name with a short ending, or the other way round: "Oslo" and "Oslos"."""
    return len(name) >= 4 and any(
        abs(len(word) - len(name)) <= 2 and (word.startswith(name) or (len(word) >= 4 and name.startswith(word)))
        for word in words
    )


def _spelt_out(name: str, words: tuple[str, ...]) -> bool:
    """Whether neighbouring words begin with the letters of an acronym; function words ("on") may be left out."""
    if not 2 <= len(name) <= _LONGEST_ACRONYM or not name.isalpha():
        return False
    return any(
        name in "".join(word[0] for word in words if word[0].isalpha() and not (bare and word in STOP_WORDS))
        for bare in (False, True)
    )
