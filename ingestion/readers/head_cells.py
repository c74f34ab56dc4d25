"""Tells periods and units from the other cells of a table's head, such as titles and names of columns."""

import re

from ingestion.column_names import CellKind, kind_of

_MOST_CHARS = 120
_MOST_WORDS = 10
_WORD = re.compile(r"\d+(?:[./]\d+)*|[^\W\d]+|[$€£¥%]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"\d{1,2}\.\d{1,2}\.(?:19|20)\d\d")
_PART_OF_YEAR = re.compile(r"\b(?:[hqst][1-4]|[1-4][hqst]|fy\d{2,4})\b")
_MONTH_NAMES = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
januar februar märz mai juni juli oktober dezember
janvier février mars avril juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
"""
_BESIDE_MONTHS = """
year years quarter quarters half month months week weeks day ended ending end as of at to the for from and until in
first second third fourth six three nine twelve st nd rd th fy h q s t fiscal calendar restated unaudited actual
jahr quartal halbjahr geschäftsjahr monate zum bis am per exercice semestre trimestre année au du de le
"""
_SCALE_NAMES = """
million millions thousand thousands billion billions mn mio m bn mrd k units percent % $ € £ ¥ 000
millionen tausend milliarden millones miles milliers milliards dollars euros francs pounds yen tonnes
"""
_BESIDE_SCALES = """
in en of de us u s all amounts figures except for per share shares data and or unless otherwise stated noted where
indicated expressed the are außer angaben
"""
_CURRENCY_CODES = """
USD EUR GBP CHF JPY CNY RMB SEK NOK DKK PLN CZK HUF RON CAD AUD NZD INR BRL MXN ZAR KRW SGD HKD TWD THB TRY ILS
"""
_MONTHS = frozenset(_MONTH_NAMES.split())
_PERIOD_WORDS = _MONTHS | frozenset(_BESIDE_MONTHS.split())
_SCALES = frozenset(_SCALE_NAMES.split())
_UNIT_WORDS = frozenset(_BESIDE_SCALES.split())
_CURRENCIES = frozenset(_CURRENCY_CODES.split())


def is_period(cell: str) -> bool:
    """Whether a cell is a date or a period, such as `January–June 2023`, `Q1 2024` or `2022`, and nothing else."""
    text = cell.strip().casefold()
    words = _words(text)
    if not words or not all(word in _PERIOD_WORDS or word[0].isdigit() for word in words):
        return False
    if kind_of(text) is CellKind.NUMBER:
        return _YEAR.fullmatch(text) is not None or _DAY.fullmatch(text) is not None
    dated = any(word in _MONTHS or _YEAR.search(word) for word in words)
    return dated or _PART_OF_YEAR.search(text) is not None


def is_unit(cell: str) -> bool:
    """Whether a cell is a unit and nothing else, such as `In millions of CHF`, `USD thousand` or `%`."""
    words = _words(cell)
    scales = [word in _CURRENCIES or word.casefold() in _SCALES for word in words]
    return any(scales) and all(
        scale or word.casefold() in _UNIT_WORDS for scale, word in zip(scales, words, strict=True)
    )


def _words(text: str) -> list[str]:
    """The words, numbers and signs of a cell; none where it is too long to be a period or a unit."""
    found = _WORD.findall(text) if len(text) <= _MOST_CHARS else []
    return found if len(found) <= _MOST_WORDS else []
