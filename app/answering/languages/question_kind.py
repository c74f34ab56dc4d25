"""Classifies an English question by the kind of answer it asks for: a number, a time, a name, or more than a few words.

The rules read surface forms only. Every module that distinguishes kinds of question uses the words of the table
`AMOUNTS`, which shows where the rules differ.

Example:
    >>> kind_asked("How many people were hurt?")
    'number'
    >>> asks_for_words("Why did the plant close?")
    False
"""

import re
from collections.abc import Mapping, Sequence
from enum import Flag, auto
from types import MappingProxyType
from typing import Literal, TypeAlias

from app.answering.languages.recognition import is_english

Kind: TypeAlias = Literal["number", "time", "name"]
"""The kind of answer a question asks for; "time" is a date, a year or another point in time."""


class Use(Flag):
    """The rules in which "how" and a word of `AMOUNTS` mark a question."""

    ANSWER = auto()
    """A few words or a sentence with a number answer the question (`kind_asked`, `asks_for_words`)."""
    CHECK = auto()
    """The verifier expects a number in the answer. Its weights were fitted without the other words."""
    FOLLOW_UP = auto()
    """The two words alone, or with "of them", are a whole follow-up question: "How many?"."""
    OPENING = auto()
    """The two words precede an auxiliary and can be exchanged: "How long did it take?", "When did it ..."."""


_EVERY = Use.ANSWER | Use.CHECK
AMOUNTS: Mapping[str, Use] = MappingProxyType(
    {
        "many": _EVERY | Use.FOLLOW_UP,  # no OPENING: a noun follows, as in "how many people"
        "much": _EVERY | Use.FOLLOW_UP | Use.OPENING,
        "long": _EVERY | Use.FOLLOW_UP | Use.OPENING,
        "old": _EVERY,
        "far": _EVERY | Use.OPENING,
        "tall": _EVERY,
        "high": _EVERY,
        "large": _EVERY | Use.FOLLOW_UP,
        "big": _EVERY | Use.FOLLOW_UP,
        "often": _EVERY | Use.FOLLOW_UP | Use.OPENING,
        "fast": Use.ANSWER,
        "deep": Use.ANSWER,
        "heavy": Use.ANSWER,
    }
)
"""The words that ask for an amount after "how", and the rules that use each of them."""


def amount_words(use: Use) -> tuple[str, ...]:
    """The words of `AMOUNTS` with `use`, in the table's order."""
    return tuple(word for word, uses in AMOUNTS.items() if use in uses)


def amount_pattern(use: Use) -> str:
    """A regular expression without groups that matches one of `amount_words(use)`, case as it is written."""
    return f"(?:{'|'.join(amount_words(use))})"


_CHECKED = frozenset(amount_words(Use.CHECK))
_AMOUNT = amount_pattern(Use.ANSWER)
# The first match decides.
_KINDS: tuple[tuple[Kind, "re.Pattern[str]"], ...] = (
    ("time", re.compile(r"\bwhen\b|\b(?:what|which|in what) (?:year|date|day|month|century|decade|time)\b", re.I)),
    ("number", re.compile(rf"\bhow {_AMOUNT}\b", re.I)),
    ("number", re.compile(r"\b(?:what|which) (?:percentage|percent|number|share|amount|age|population)\b", re.I)),
    ("name", re.compile(r"\b(?:who|whom|whose|where)\b|\b(?:what|which) (?:city|country|state|person|team)\b", re.I)),
)
_ASKS_FOR_WORDS = re.compile(rf"\b(?:who|whom|whose|when|where|which|what|how {_AMOUNT})\b", re.I)
_OPEN = re.compile(
    r"^\W*(?:(?:and|but|so|please|also)\W+)*"
    rf"(?:why\b|how (?!{_AMOUNT}\b)|(?:is|are|was|were|do|does|did|can|could|may|should|would|will|has|have|had|"
    r"describe|explain|tell|list|summari[sz]e|compare|give|show|what (?:if|about|(?:do|does) .* (?:say|mean)))\b)",
    re.I,
)


_AMOUNT_NOUN = (
    r"(?:total|net|gross|average|sales|revenues|earnings|profits|losses|assets|liabilities|expenses|costs|odds)"
)
_PLURAL_VERB = r"(?:are|were|have|had|do|did|can|could|must|should|may|might|will|would)"
_NO_PLURAL = r"(?!(?:is|was|has|does|this|its|his|as|us)\b)"
# "can you please" is two repetitions; as an alternative of its own it would double the time each time.
_SEVERAL = re.compile(
    r"^\W*(?:(?:and|but|so|please|also|(?:can|could|would) you)\W+)*"
    r"(?:list\b|enumerate\b|compare\b|name (?:all|the|some|every|each|two|three|four|five|six|\d+)\b"
    r"|(?:give|show|tell)(?: me| us)? (?:(?:a|the) list\b|all\b|every\b|examples\b)"
    r"|(?:what(?:'s| is| are) )?(?:the )?differences? between\b|how many of\b|who (?:are|were) (?:the|all|its|their)\b"
    r"|(?:what|which) (?:are|were) (?:the|all|some|its|their|his|her|our|your|[\w.-]+['’]s?)(?!\w)"
    rf"(?!\W++(?:[\w-]+ ){{0,3}}?{_AMOUNT_NOUN}\b)"
    rf"|which {_NO_PLURAL}[\w-]+(?<![sui])s [a-z]"
    rf"|(?:which|what) (?:[\w-]+ ){{0,2}}{_NO_PLURAL}[\w-]+(?<![sui])s {_PLURAL_VERB}\b)",
    re.IGNORECASE,
)
_LONGEST_COMPARED = 1_000  # characters of a question; the patterns take quadratic time
_COMPARED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bcompare (?P<one>.+?) (?:and|with|to|against|versus|vs\.?) (?P<other>.+)",
        r"\bdifferences? between (?P<one>.+?) and (?P<other>.+)",
        r"\bhow (?:do|does|did) (?P<one>.+?) (?:differ from|compare (?:to|with)) (?P<other>.+)",
        r"^(?P<one>.+?) (?:versus|vs\.?) (?P<other>.+)",
    )
)


def compared(question: str) -> tuple[str, str] | None:
    """The two things that an English question compares, in its own words; None for every other one, and for a long one.

    >>> compared("Compare the Boots nut and the elastic stop nut.")
    ('the Boots nut', 'the elastic stop nut')
    """
    if len(question) > _LONGEST_COMPARED or not is_english(question):
        return None
    asked = question.strip().rstrip("?!. ")
    found = next((match for pattern in _COMPARED if (match := pattern.search(asked)) is not None), None)
    return None if found is None else (found.group("one"), found.group("other"))


def asks_for_several(question: str) -> bool:
    """Whether an English question has several answers: a list, a comparison, "which countries", "how many of".

    >>> asks_for_several("Which countries joined?"), asks_for_several("Which country joined first?")
    (True, False)
    """
    return is_english(question) and (_SEVERAL.search(question) is not None or compared(question) is not None)


def kind_asked(question: str) -> Kind | None:
    """The kind of answer an English question asks for, None where the rules cannot decide."""
    return next((kind for kind, asks in _KINDS if asks.search(question)), None)


def asks_for_words(question: str) -> bool:
    """Whether a few words of an English text can answer: who, when, how many; not why, how to, or yes and no.

    Several things are no few words.
    """
    if not is_english(question) or asks_for_several(question):
        return False
    return _ASKS_FOR_WORDS.search(question) is not None and _OPEN.search(question) is None


def kind_checked(words: Sequence[str]) -> Literal["number", "name"] | None:
    """The kind of word the verifier expects in the answer to a question of these folded words, or None.

    A date counts as a number here, because the verifier compares numbers and months together. The rules are narrower
    than `kind_asked`'s: the verifier's weights were fitted with them.
    """
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word == "when" or (word == "how" and following in _CHECKED) or following in {"year", "date", "percentage"}:
            return "number"
        if word in {"who", "whom", "whose"}:
            return "name"
    return None
