"""Detects contradictions between two statements: a negation on one side only, or words of opposite meaning."""

from collections.abc import Iterator
from functools import cache

from app.answering.languages.statement import Statement, stem
from retrieval.words import STOP_WORDS

_NEGATORS = frozenset(
    ("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot", "hardly", "unable",
     "lack", "lacks", "lacked", "fail", "fails", "failed")
)  # fmt: skip
_NO_NEGATION = frozenset(("only", "just", "merely", "least", "until", "necessarily"))  # "not only", "not until"
_SCOPE = 6  # words a negator reaches, unless a mark ends its clause
_NEIGHBOURS = 5  # content words on each side of an opposite, one of which both texts must share
_MARKS = frozenset(".!?;:,()")

# Each row has words of opposite meaning. Pairs that often differ without a contradiction (men and women, in and out,
# open and public) are left out; the pairs were chosen on scifact-train (docs/EXPERIMENTS.md).
_OPPOSITES = (
    ("rise rises rising rose risen increase increases increased increasing grow grows growing grew growth gain gains "
     "climb climbed soar soared expand expanded surge surged higher improve improved improving",
     "fall falls falling fell fallen decrease decreases decreased decreasing decline declines declined declining drop "
     "drops dropped shrink shrinks shrank shrinking reduce reduces reduced reducing lower lowered worsen worsened "
     "plunge plunged"),
    ("more", "less fewer"),
    ("most", "least fewest"),
    ("win wins won winning victory", "lose loses lost losing defeat"),
    ("before prior", "after following"),
    ("above over exceed exceeds exceeded", "below under"),
    ("first", "last"),
    ("open opens opened opening", "close closes closed closing"),
    ("start starts started begin begins began begun", "end ends ended stop stops stopped finish finished ceased"),
    ("accept accepts accepted approve approves approved allow allows allowed permit permitted",
     "reject rejects rejected deny denies denied refuse refused prohibit prohibited forbid forbidden ban banned"),
    ("include includes included", "exclude excludes excluded"),
    ("maximum maximal", "minimum minimal"),
    ("positive positively", "negative negatively"),
    ("true", "false"),
    ("possible", "impossible"),
    ("likely", "unlikely"),
    ("safe", "unsafe dangerous"),
    ("effective", "ineffective"),
    ("similar identical", "different differs"),
    ("always", "never"),
    ("high", "low"),
    ("hot hotter warm warmer warming warms warmed", "cold colder cool cooler cooling cools cooled"),
    ("large larger largest big bigger biggest", "small smaller smallest"),
    ("fast faster fastest", "slow slower slowest"),
    ("old older oldest", "young younger youngest"),
    ("strong stronger strengthen strengthens", "weak weaker weaken weakens"),
    ("long longer longest", "short shorter shortest"),
    ("north northern", "south southern"),
    ("east eastern", "west western"),
    ("import imports imported", "export exports exported"),
    ("buy buys bought purchased", "sell sells sold"),
    ("profit profits profitable", "loss losses unprofitable"),
    ("activate activates activated activation induce induces induced promote promotes promoted",
     "inhibit inhibits inhibited inhibition suppress suppresses suppressed prevent prevents prevented"),
    ("benefit benefits beneficial", "harm harms harmful"),
    ("support supports supported", "oppose opposes opposed"),
    ("presence", "absence"),
)  # fmt: skip


@cache
def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for left, right in _OPPOSITES:
        sides = {stem(word) for word in left.split()}, {stem(word) for word in right.split()}
        for one, other in (sides, sides[::-1]):
            for word in one:
                found.setdefault(word, set()).update(other - one)
    return {word: frozenset(others) for word, others in found.items()}


def contradicts(claim: Statement, evidence: Statement) -> bool:
    """Whether `evidence` says the opposite of `claim` near the words they share.

    A negation on one side only is one reversal, a pair of opposites is another: an odd number of them
    contradicts ("did not rise" and "fell" agree). A pair does not count if one text has both words.
    """
    return negated(claim, evidence) != opposed(claim, evidence)


def negated(claim: Statement, evidence: Statement) -> bool:
    """Whether shared words are in the reach of a negator in just one of the statements."""
    shared = claim.terms & evidence.terms
    here, there = _reach(claim) & shared, _reach(evidence) & shared
    return bool(here) != bool(there)


def opposed(claim: Statement, evidence: Statement) -> bool:
    """Whether one statement has a word and the other only its opposite, near words that both share."""
    table = _opposites()
    shared = claim.terms & evidence.terms
    for at, word in enumerate(claim.stems):
        others = table.get(word, frozenset()) & evidence.terms
        if not others or word in evidence.terms or others & claim.terms:
            continue
        near = shared & _around(claim.stems, at)
        if any(near & _around(evidence.stems, there) for there, other in enumerate(evidence.stems) if other in others):
            return True
    return False


def _around(stems: tuple[str, ...], at: int) -> frozenset[str]:
    return frozenset(stems[max(0, at - _NEIGHBOURS) : at] + stems[at + 1 : at + 1 + _NEIGHBOURS])


def _reach(statement: Statement) -> frozenset[str]:
    """Stems of the content words within reach of a negator."""
    return frozenset(stem(word) for word in _reached(statement.words) if word not in STOP_WORDS)


def _reached(words: tuple[str, ...]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word not in _NEGATORS and not word.endswith(("n't", "n’t")):
            continue
        following = words[at + 1 : at + 1 + _SCOPE]
        if following[:1] and following[0] in _NO_NEGATION:
            continue
        if at == 0 and following[:1] and following[0] in _MARKS:  # "No, it did": the whole statement
            yield from (other for other in words[2:] if other not in _MARKS)
            continue
        for other in following:
            if other in _MARKS:
                break
            yield other
