"""Takes a text apart for comparison: its content words, numbers, months and names."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from retrieval.memo import remembered
from retrieval.words import STOP_WORDS, UNSPACED, terms

_TOKEN = re.compile(rf"[{UNSPACED}]+|\d+(?:[.,]\d+)*|[^\W\d_{UNSPACED}]+(?:['’][^\W\d_{UNSPACED}]+)*|%|[.!?;:,()]")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?\Z")  # 1,234.5 and India's 12,34,567
_GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?\Z")
_ISO_DATE = re.compile(r"\b\d{4}-(0[1-9]|1[0-2])-\d{2}\b")

_SMALL = (
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
     "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
)  # fmt: skip
_UNITS = {name: value for value, name in enumerate(_SMALL)}
_TENS = {
    name: 10 * value
    for value, name in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)
}
_ORDINALS = {
    name: value
    for value, name in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 1
    )
}
_SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "million": 1_000_000,
    "mn": 1_000_000,
    "billion": 1_000_000_000,
    "bn": 1_000_000_000,
    "trillion": 1_000_000_000_000,
}
_PERCENT = frozenset(("%", "percent", "percentage", "pct"))
_MONTH_NAMES = (
    ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
    ("july", "jul"), ("august", "aug"), ("september", "sept", "sep"), ("october", "oct"), ("november", "nov"),
    ("december", "dec"),
)  # fmt: skip
_MONTHS = {name: month for month, names in enumerate(_MONTH_NAMES, 1) for name in names}
# Also other words than months: they count as months when capitalised, and not first unless a number is beside them.
_MAYBE_MONTHS = frozenset(("may", "march", "mar", "jan", "dec", "sep", "sept", "jun", "jul", "aug"))
# Capitalised without being a name.
_NO_NAMES = STOP_WORDS | frozenset(
    """
    yes no not none both either neither also however therefore because since while although though according
    he she they we it his her our us i mr mrs ms dr prof source sources answer question
    """.split()  # noqa: SIM905 - a list of as many quoted words is no easier to read
)
_ENDINGS = (
    ("ingly", "edly", "ation", "ings", "ment", "ness", "ing", "ion", "ity", "ers", "ive", "ed", "ly", "er", "al", "es",
     "e", "y")
)  # fmt: skip
_LEAST_STEM = 4


@dataclass(frozen=True, slots=True)
class Number:
    """A number in digits or words.

    Attributes:
        value: The number with its scale: 48 million is 48000000.
        bare: The number without its scale: 48.
        scale: The scale: 1000000.
        percent: Whether it is a percentage.
        loose: Whether it is a word that is often no number ("one", "first"): evidence may hold it, a claim does not
            require it.
    """

    value: Decimal
    bare: Decimal
    scale: int
    percent: bool
    loose: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A text in parsed form, for comparison. Evidence must share a claim's numbers, months and names.

    Attributes:
        words: Its tokens in order, case-folded, punctuation included.
        stems: The stems of its content words, in order.
        numbers: Its numbers, in order.
        months: Its months, 1 to 12.
        names: Its names, case-folded.
        percent: Whether it mentions a percentage.
        scales: The scales it mentions: 1000000 for "in millions".
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    numbers: tuple[Number, ...]
    months: frozenset[int]
    names: frozenset[str]
    percent: bool
    scales: frozenset[int]

    @property
    def terms(self) -> frozenset[str]:
        """Its distinct content words."""
        return frozenset(self.stems)


def parse_statement(text: str, *, fragment: bool = False) -> Statement:
    """Take a text apart.

    Args:
        text: A sentence or several.
        fragment: It is a short answer rather than a sentence: its first word may be a name.
    """
    return _parse_fragment(text) if fragment else _parse_sentences(text)


@remembered
def _parse_fragment(text: str) -> Statement:
    return _parse(text, fragment=True)


@remembered
def _parse_sentences(text: str) -> Statement:
    return _parse(text, fragment=False)


def _parse(text: str, *, fragment: bool) -> Statement:
    tokens = _TOKEN.findall(text)
    folded = tuple(token.casefold().replace("’", "'") for token in tokens)
    months = {int(match[1]) for match in _ISO_DATE.finditer(text)}
    names: set[str] = set()
    stems: list[str] = []
    first = not fragment
    for at, (token, word) in enumerate(zip(tokens, folded, strict=True)):
        if not word[0].isalnum():
            first = first or (word in ".!?" and not _abbreviates(tokens[:at]))
            continue
        if word[0].isdecimal():
            stems.append(_plain(word))
        elif _UNSPACED.match(word):
            stems += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        else:
            large = token[0].isupper() and not first
            acronym = len(token) > 1 and token.isupper()
            spelt = word.removesuffix("'s")
            month = _MONTHS.get(spelt)
            beside = [near for near in (*folded[max(0, at - 1) : at], *folded[at + 1 : at + 2]) if near[0].isdecimal()]
            if month is not None and (spelt not in _MAYBE_MONTHS or (token[0].isupper() and (large or beside))):
                months.add(month)
            elif (large or acronym) and spelt not in _NO_NAMES and not _is_number(spelt):
                names.add(spelt)
            if spelt not in STOP_WORDS:
                stems.append(stem(spelt))
        first = False
    scales = frozenset(_SCALES[scale] for word in folded if (scale := _scale(word)) is not None)
    return Statement(
        words=folded,
        stems=tuple(stems),
        numbers=_numbers(folded),
        months=frozenset(months),
        names=frozenset(names),
        percent=any(word in _PERCENT for word in folded) or "cent" in folded,
        scales=scales,
    )


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A folded word without its common English ending: "warmed", "warming" and "warms" have one stem.

    At most one ending is cut, and four letters are left (after Lovins 1968, "Development of a stemming
    algorithm"). It is coarser than the plural stemmer of the search, because both texts are short.
    """
    reduced = terms(word)
    if len(reduced) != 1:  # "don't", and scripts without spaces
        return word
    (singular,) = reduced
    if not singular.isascii() or not singular.isalpha():
        return singular
    for ending in _ENDINGS:
        if singular.endswith(ending) and len(singular) - len(ending) >= _LEAST_STEM:
            cut = singular[: -len(ending)]
            if len(cut) > _LEAST_STEM and cut[-1] == cut[-2] and cut[-1] not in "lsz":
                return cut[:-1]
            return cut
    return singular


def _abbreviates(before: list[str]) -> bool:
    """Whether the full stop after these tokens belongs to an abbreviation or an initial."""
    return bool(before) and (len(before[-1]) == 1 or before[-1] in {"Dr", "Mr", "Mrs", "Ms", "St", "Prof", "vs", "No"})


def _plain(digits: str) -> str:
    """A number in digits, without grouping and needless zeros: 1,234.50 is 1234.5."""
    text = digits.rstrip(".,")
    if _GROUPED.match(text):
        text = text.replace(",", "")
    elif _GROUPED_BY_DOTS.match(text):
        text = text.replace(".", "").replace(",", ".")
    else:
        text = text.replace(",", ".")
    try:
        value = Decimal(text)
    except InvalidOperation:  # 1.2.3 is a version, not a number
        return text
    return format(value.normalize(), "f")


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(_plain(text))
    except InvalidOperation:
        return None


def _is_number(word: str) -> bool:
    return word in _UNITS or word in _TENS or word in _SCALES


def _scale(word: str) -> str | None:
    singular = word.removesuffix("s") if len(word) > 3 else word
    return singular if singular in _SCALES else None


def _numbers(words: tuple[str, ...]) -> tuple[Number, ...]:
    """The numbers in order; "two hundred" and "48 million" are one each."""
    found: list[Number] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        loose = word == "one" or word in _ORDINALS
        if word[0].isdecimal():
            bare = _decimal(word)
            if bare is None:  # a version or a section number must match as it is written
                parts = [Decimal(part) for part in re.findall(r"\d+", word)]
                found.extend(Number(part, part, 1, percent=False, loose=False) for part in parts)
                continue
        elif word in _TENS:
            bare = Decimal(_TENS[word])
            if at < len(words) and 0 < _UNITS.get(words[at], 0) < 10:
                bare += _UNITS[words[at]]
                at += 1
        elif word in _UNITS or word in _ORDINALS:
            bare = Decimal(_UNITS.get(word, _ORDINALS.get(word, 0)))
        else:
            continue
        scale = 1
        while at < len(words) and (name := _scale(words[at])) is not None:
            scale *= _SCALES[name]
            at += 1
        following = words[at : at + 2]
        percent = following[:1] in {("%",), ("percent",), ("pct",), ("percentage",)} or following == ("per", "cent")
        found.append(Number(bare * scale, bare, scale, percent=percent, loose=loose))
    return tuple(found)
