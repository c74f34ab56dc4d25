"""Replaces the words of a question that refer to earlier turns: pronouns, demonstratives, definite noun phrases.

Each is replaced by its antecedent where there is one. Only the first of a kind is replaced: the others refer to it.
"""

import re
from collections.abc import Sequence

from app.answering.languages.noun_phrases import (
    AUXILIARIES,
    BE,
    CONJUNCTIONS,
    DETERMINERS,
    DO,
    FUNCTION_WORDS,
    PARTICIPLE,
    PREPOSITIONS,
    TIMES,
    WH,
    Word,
    names,
    plural,
    words,
)
from app.answering.understanding.followup.antecedents import Exchange, Kind, antecedent, name, named, owner, year

# Expletive "it", without a referent: "how long does it take to …", "is it true that …".
_EMPTY_IT = re.compile(
    r"\b(?:does|did|will|would|can|could|should)\s+it\s+(?:take|cost|mean|matter|help|rain|snow|make\s+sense)\b"
    r"|\b(?:is|was|be)\s+it\s+(?:\w+\s+)?(?:true|possible|necessary|important|likely|legal|allowed|safe|better|best|hard"
    r"|easy|difficult|common|normal|ok|okay|good|bad|worth|usual|known|said|believed|called\s+(?:when|if))\b|\b(?:time|far)\s+is\s+it\b"
    r"|\bit(?:['’]s|\s+is|\s+was)\s+(?:\w+\s+){0,2}that\b|\bit['’]s\b",
    re.IGNORECASE,
)
_PRONOUNS: dict[str, Kind] = {
    "he": "person",
    "she": "person",
    "him": "person",
    "it": "thing",
    "they": "several",
    "them": "several",
}
_POSSESSIVES: dict[str, Kind] = {"his": "person", "her": "person", "its": "thing", "their": "several"}
# Nouns for things and people that have names.
_THINGS = frozenset(
    """agency album book building castle city club college company corporation country film firm island movie museum
    newspaper novel organisation organization palace play song stadium temple tower town university village""".split()  # noqa: SIM905
)
_PEOPLE = frozenset("artist author director man player poet scientist singer woman writer".split())  # noqa: SIM905
# Nouns that "this" and "that" can stand before without an antecedent.
_PERIODS = frozenset(
    """case century context day days decade evening month morning night point quarter regard season time way week
    year""".split()  # noqa: SIM905
)
_SUBORDINATES = frozenset("after although as because before if since when while".split())  # noqa: SIM905
_MOTIONS = frozenset("come drive fly get go goes going move moved travel travelled walk went".split())  # noqa: SIM905


def resolved(text: str, before: Sequence[Exchange]) -> str:
    """`text` with its references replaced by antecedents; unchanged where there are no references or no antecedents."""
    changed = pointing(text, before)
    return _definites(text, before) if changed == text and not names(text) else changed


def pointing(text: str, before: Sequence[Exchange]) -> str:
    """`text` with the antecedents of its pronouns and demonstratives."""
    changed = _pronouns(text, before)
    return _demonstratives(text, before) if changed == text else changed


def _pronouns(text: str, before: Sequence[Exchange]) -> str:
    tokens = words(text)
    puts: list[tuple[Word, str]] = []
    kinds: set[Kind] = set()
    antecedents: set[str] = set()
    for at, word in enumerate(tokens):
        kind, owns = _pronoun(tokens, at)
        if kind is None or kind in kinds or _inside(text, tokens, at, owns=owns):
            continue
        if word.low == "it" and _EMPTY_IT.search(text):
            continue
        found = owner(kind, before) if owns else antecedent(kind, before)
        if found is None or found in antecedents:
            continue
        kinds.add(kind)
        antecedents.add(found)
        if kind == "place":
            found = f"{'to' if tokens[at - 1].low in _MOTIONS else 'in'} {found}"
        puts.append((word, _owning(found) if owns else found))
    for word, phrase in reversed(puts):
        text = _put(text, word.start, word.end, phrase)
    return text


def _pronoun(tokens: Sequence[Word], at: int) -> tuple[Kind | None, bool]:
    """The kind of thing a pronoun refers to, None for other words, and whether it is a possessive."""
    word = tokens[at]
    follower = tokens[at + 1] if at + 1 < len(tokens) else None
    if word.capital and at > 0:
        return None, False  # a name: "IT", "Her Majesty"
    if word.low == "her":
        return "person", follower is not None and (follower.capital or follower.low not in FUNCTION_WORDS)
    if word.low in _POSSESSIVES:
        return (_POSSESSIVES[word.low], True) if follower is not None else (None, False)
    if word.low == "there" and at and tokens[at - 1].low not in FUNCTION_WORDS:
        ends = follower is None or follower.low in PREPOSITIONS | CONJUNCTIONS
        return ("place", False) if ends else (None, False)
    return _PRONOUNS.get(word.low), False


def _inside(text: str, tokens: Sequence[Word], at: int, *, owns: bool) -> bool:
    """Whether the word's antecedent is in its own question."""
    earlier, word = tokens[:at], tokens[at]
    joined = any(token.low in CONJUNCTIONS for token in earlier[1:])
    if earlier and names(f"{text[: word.start]}x"):
        return joined or at < len(tokens) - 1 or earlier[-1].low != "about"
    begins = tokens[0].low in _SUBORDINATES and len(tokens) > 1 and tokens[1].low not in AUXILIARIES
    if begins and (at > 2 or ("," in text[word.end :] and names(f"x {text[word.end :]}"))):
        return True  # "If the lines are cut, who mends them?", "When he was young, where did Ibsen live?"
    nouns = [token for token in earlier if token.low not in FUNCTION_WORDS and not token.text[0].isdigit()]
    known = any(earlier[i - 1].low in DETERMINERS for i in range(1, len(earlier)))
    if owns:  # "Which group changed its name?", "What keeps members from leaving their own party?"
        asks = len(earlier) > 1 and earlier[0].low in {"which", "what"} and earlier[1] in nouns
        return known or len(nouns) > 1 or asks or text[word.end :].startswith(" own ")
    several = tokens[at].low in {"they", "them"} and any(plural(token.text) for token in nouns)
    return (known and joined) or (several and any(token.low in CONJUNCTIONS | WH for token in earlier[1:]))


def _demonstratives(text: str, before: Sequence[Exchange]) -> str:
    """`text` with `that company`, `these figures`, `in that year` or `that` alone replaced by the antecedent."""
    tokens = words(text)
    for at, word in enumerate(tokens[:-1]):
        if not _points(tokens, at) or names(f"{text[: word.start]}x"):
            continue
        noun = tokens[at + 1]
        if noun.low in _PERIODS:
            when = year(before) if word.low == "that" and noun.low in {"year", "time"} else None
            return text if when is None else _put(text, word.start, noun.end, when)
        alone = _alone(tokens, at)
        if names(text) and not alone and noun.low not in _THINGS:
            return text
        kind: Kind = "several" if word.low in {"these", "those"} else "thing"
        if alone:
            found = antecedent(kind, before)
        else:
            found = named(noun.low, before)
            if found is None and noun.low in _THINGS | _PEOPLE:
                found = name(before, of_person=noun.low in _PEOPLE)
        if found is not None:
            return _put(text, word.start, word.end if alone else noun.end, found)
    return text


def _points(tokens: Sequence[Word], at: int) -> bool:
    """Whether `this` or `that` is a demonstrative: "that" is more often a conjunction."""
    word, noun = tokens[at], tokens[at + 1]
    if noun.capital or noun.start - word.end != 1 or noun.low in {"who", "which", "that"}:
        return False
    if word.low in {"this", "these", "those"}:
        return True
    return word.low == "that" and (at == 0 or tokens[at - 1].low in PREPOSITIONS | AUXILIARIES | {"and"})


def _alone(tokens: Sequence[Word], at: int) -> bool:
    """Whether a demonstrative has no noun: "How does that compare?", "How many of those work in Oslo?"."""
    follower = tokens[at + 1]
    if at and tokens[at - 1].low == "of":
        return not plural(follower.text) and tokens[at].low in {"these", "those"}
    if not at or tokens[at - 1].low not in AUXILIARIES:
        return False
    after = tokens[at + 2] if at + 2 < len(tokens) else None
    return after is None or after.low in FUNCTION_WORDS or follower.low in FUNCTION_WORDS


def _definites(text: str, before: Sequence[Exchange]) -> str:
    """`text` with `the plant` replaced by the plant named before, where the question does not identify it."""
    tokens = words(text)
    for at, word in enumerate(tokens[:-1]):
        if word.low != "the":
            continue
        first = not any(token.low in DETERMINERS | CONJUNCTIONS for token in tokens[2:at])
        for end in range(at + 1, min(at + 4, len(tokens))):
            noun = tokens[end]
            if noun.low in FUNCTION_WORDS or text[tokens[end - 1].end : noun.start] != " ":
                break
            if not _complete(text, tokens, at, end):
                continue
            found = named(noun.low, before)
            if found is None and first and end == at + 1 and noun.low in _THINGS | _PEOPLE:
                found = name(before, of_person=noun.low in _PEOPLE)
            if found is not None:
                return _put(text, word.start, noun.end, found)
    return text


def _complete(text: str, tokens: Sequence[Word], start: int, end: int) -> bool:
    """Whether a noun phrase can end with the word at `end`, with no modifier behind it."""
    if end + 1 >= len(tokens) or text[tokens[end].end :].startswith(("'s", "’s")):
        return True
    follower = tokens[end + 1]
    if follower.low in PREPOSITIONS and follower.low != "of":
        after = tokens[end + 2] if end + 2 < len(tokens) else None
        return after is None or after.text[0].isdigit() or after.low in TIMES
    if follower.low in FUNCTION_WORDS:
        return follower.low not in {"of", "that", "which", "who", "where"}
    asked = {token.low for token in tokens[:start]}
    return not follower.capital and bool(asked & DO or (asked & BE and PARTICIPLE.fullmatch(follower.low)))


def _owning(phrase: str) -> str:
    return f"{phrase}'" if plural(phrase) and phrase.endswith("s") else f"{phrase}'s"


def _put(text: str, start: int, end: int, phrase: str) -> str:
    """`text` with `phrase` in place of `[start, end)`, capitalised where it begins the question."""
    return text[:start] + (phrase[0].upper() + phrase[1:] if start == 0 else phrase) + text[end:]
