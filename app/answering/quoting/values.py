"""Reads the value of words that answer a question, and tells which values cannot both be meant.

A value is a number with its unit, a date, or a name. Values that one thing can have both do not contradict: a date and
the year that it is in, a number and the same one rounded, "more than 100" and 120, a name and its short form.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from app.answering.answers.parts import What
from app.answering.languages.details import lacks_name
from app.answering.languages.question_kind import Kind
from app.answering.languages.statement import parse_statement, stem
from retrieval.words import STOP_WORDS, folded

_YEAR = re.compile(
    r"(?<![\d.,/])(?<!\d-)(?:1\d|20)\d\d(?!\d|[.,]\d|s\b)(?:\s?[-–/]\s?(?P<end>(?:1\d|20)?\d\d)\b(?!-))?"
)
_DAY = re.compile(r"(?<![\d.,])(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b(?![.,]?\d|\s?%)")
_ISO = re.compile(r"\b(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-3]\d)\b")
_MONTH = re.compile(
    r"\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)\b"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_BEFORE_CHRIST = re.compile(r"\bB\.?C\b", re.IGNORECASE)
_CURRENCIES = {
    "$": "dollar", "usd": "dollar", "dollars": "dollar", "dollar": "dollar", "€": "euro", "eur": "euro",
    "euro": "euro", "euros": "euro", "£": "pound", "gbp": "pound", "pound": "pound", "pounds": "pound",
    "¥": "yen", "yen": "yen", "jpy": "yen", "chf": "franc", "francs": "franc",
}  # fmt: skip
_CURRENCY = re.compile(r"[$€£¥]|\b(?:usd|eur|euros?|dollars?|gbp|pounds?|jpy|yen|chf|francs?)\b", re.IGNORECASE)
_NUMERAL = re.compile(
    r"(?<![\w.,])[-−]?\d+(?:[.,]\d+)*|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|"
    r"fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|"
    r"hundred)\b",
    re.IGNORECASE,
)
_SCALE_WORDS = frozenset(("hundred", "thousand", "million", "mn", "billion", "bn", "trillion"))
_LOOSE = re.compile(
    r"\b(?:about|around|approximately|roughly|nearly|almost|some|circa|ca|estimated|over|more than|at least|above|"
    r"up to|at most|under|below|less than|fewer than|minimum|maximum|exceed\w*)\W{1,3}(?:\w{1,15}\W{1,3})?\Z",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_OF = re.compile(r"\W+(?:out )?of\b")
_BETWEEN = re.compile(r",\s(?:and\s|or\s)?|\s(?:and|or|&)\s")  # two names of a list
_SMALL = 3  # letters of a small word of a name: "van", "del"
_ROUNDED = Decimal("0.05")
"""How far a number may be from the same one rounded, as a share of it."""
_ABOUT = Decimal("0.15")
"""How far a number of "about" or "more than" may be from another, as a share of the larger, and mean the same."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of words that answer.

    Attributes:
        what: What it is.
        text: The words.
        low, high: Of a number, both equal if it is no range; 0 of others.
        loose: Whether it is "about" or "more than" a number.
        unit: Of a number: its currency, "%", or the stem of the word behind it; "" where there is none.
        years: Of a date: the first and the last year; none where it tells no year.
        month, day: Of a date, 0 where it tells none.
    """

    what: What
    text: str
    low: Decimal = Decimal(0)
    high: Decimal = Decimal(0)
    loose: bool = False
    unit: str = ""
    years: tuple[int, int] | None = None
    month: int = 0
    day: int = 0


def value_in(sentence: str, words: str, asked: Kind | None) -> Value | None:
    """The value of `words` in their `sentence`, of the kind that is asked for; None where they are no single value.

    >>> value_in("The fee is 4.80 euros.", "4.80", "number").unit
    'euro'
    """
    at = sentence.find(words)
    if at < 0:
        return None
    if asked == "time" or (asked is None and _is_date(words)):
        return _date(words)
    if asked == "number" or (asked is None and _NUMERAL.search(words)):
        return _number(sentence, at, words)
    return _name(words)


def contradict(one: Value, other: Value) -> bool:
    """Whether two values cannot both be meant. Values of which too little is known do not contradict each other."""
    if one.what != other.what:
        return False
    match one.what:
        case "date":
            return _dates_contradict(one, other)
        case "number":
            return _numbers_contradict(one, other)
        case "name":
            return _names_contradict(one.text, other.text)


def years_in(text: str) -> frozenset[int]:
    """The years that a text tells, those of a period with both of its ends."""
    return frozenset(year for match in _YEAR.finditer(text) for year in _years(match))


def _years(match: "re.Match[str]") -> Iterator[int]:
    first = int(match.group()[:4])
    yield first
    if end := match["end"]:
        yield int(f"{str(first)[: 4 - len(end)]}{end}")


def _is_date(words: str) -> bool:
    bare = _YEAR.fullmatch(words.strip())
    return (
        bare is not None
        or _ISO.search(words) is not None
        or (_MONTH.search(words) is not None and any(char.isdigit() for char in words))
    )


def _date(words: str) -> Value | None:
    if _BEFORE_CHRIST.search(words):
        return None
    if iso := _ISO.search(words):
        year = int(iso["year"])
        return Value("date", words, years=(year, year), month=int(iso["month"]), day=int(iso["day"]))
    found = years_in(words)
    years = (min(found), max(found)) if found else None
    months = _MONTH.findall(words)
    if len(months) > 1:
        return Value("date", words, years=years) if years else None
    month = _MONTHS.index(months[0][:3].casefold()) + 1 if months else 0
    days = _DAY.findall(_YEAR.sub(" ", words)) if month else []
    return (
        Value("date", words, years=years, month=month, day=int(days[0]) if len(days) == 1 else 0)
        if years or month
        else None
    )


def _dates_contradict(one: Value, other: Value) -> bool:
    if one.years and other.years:
        if one.years[1] < other.years[0] or other.years[1] < one.years[0]:
            return True
        if one.years != other.years:
            return False
    elif one.years or other.years:
        return False
    if not one.month or not other.month:
        return False
    return one.month != other.month or (one.day != other.day and 0 not in (one.day, other.day))


def _number(sentence: str, at: int, words: str) -> Value | None:
    numbers = [
        one for one in parse_statement(words, fragment=True).numbers if not one.loose or words.casefold() == "one"
    ]
    spans = list(_NUMERAL.finditer(words))
    if not numbers or len(numbers) > 2 or not spans:
        return None
    if len(numbers) == len(spans) and _OF.match(words, spans[0].end()):  # "177 of 201" is the first
        numbers, spans = numbers[:1], spans[:1]
    amounts = [one.value for one in numbers]
    loose = _LOOSE.search(sentence[: at + spans[0].start()]) is not None
    behind = sentence[at + spans[-1].end() :]
    following = [match.group().casefold() for match in _WORD.finditer(behind[:60].split(". ")[0])]
    rest = [word for word in following if word not in _SCALE_WORDS][:1]
    near = sentence[max(0, at - 4) : at] + words + behind[:16]
    currency = _CURRENCY.search(near)
    if currency is not None:
        unit = _CURRENCIES.get(currency.group().casefold(), currency.group().casefold())
    elif any(one.percent for one in numbers) or re.match(r"\s?(?:%|per ?cent)", behind):
        unit = "%"
    else:
        unit = stem(rest[0]) if rest and rest[0] not in STOP_WORDS else ""
    return Value("number", words, low=min(amounts), high=max(amounts), loose=loose, unit=unit)


def _numbers_contradict(one: Value, other: Value) -> bool:
    if one.unit != other.unit:
        return False
    if one.low <= other.high and other.low <= one.high:
        return False
    near, far = (one, other) if one.high < other.low else (other, one)
    largest = max(abs(near.high), abs(far.low))
    if (one.loose or other.loose) and far.low - near.high <= _ABOUT * largest:
        return False
    return not (_is_rounded(near.high, far.low) or _is_rounded(far.low, near.high))


def _is_rounded(coarse: Decimal, fine: Decimal) -> bool:
    """Whether a number is another one with fewer digits: 3.7 of 3.68, 1.2 million of 1,203,000."""
    if not coarse:
        return False
    step = Decimal(1).scaleb(int(coarse.normalize().as_tuple().exponent))
    finer = int(fine.normalize().as_tuple().exponent) < int(coarse.normalize().as_tuple().exponent)
    return finer and abs(coarse - fine) <= min(step / 2, _ROUNDED * abs(coarse))


def _name(words: str) -> Value | None:
    """A name has capitals but for its small words: "Bank of England", not "colonial America".

    Three names or more are a list and no value: another passage may rightly give one of them alone.
    """
    if len(_BETWEEN.findall(words)) > 1:
        return None
    first, *_ = parts = [word for word in _WORD.findall(words) if word.casefold() not in STOP_WORDS] or [""]
    named = first[:1].isupper() and all(word[0].isupper() or len(word) <= _SMALL for word in parts[1:])
    return Value("name", words) if named else None


def _names_contradict(one: str, other: str) -> bool:
    if _capitalised(one) & _capitalised(other):
        return False
    here, there = parse_statement(one, fragment=True), parse_statement(other, fragment=True)
    return lacks_name(here, there, around=frozenset()) and lacks_name(there, here, around=frozenset())


def _capitalised(words: str) -> frozenset[str]:
    """The words of a name that are written with a capital, without those of grammar."""
    return folded(" ".join(word for word in words.split() if any(char.isupper() for char in word)))
