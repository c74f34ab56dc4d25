"""Parses metadata filters from JSON and defines their meaning."""

import math
from typing import Any, Literal, NoReturn, get_args

from retrieval.errors import InvalidFilter
from retrieval.types import Combination, Comparison, Filter, Metadata, MetadataValue

MAX_DEPTH = 8
MAX_CONDITIONS = 64
MAX_LIST = 1000
MAX_FIELD_CHARS = 128

_Comparing = Literal["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte"]
_COMPARING = get_args(_Comparing)
_LISTS = ("$in", "$nin")
_ORDERS = ("$gt", "$gte", "$lt", "$lte")


def parse_filter(raw: object) -> Filter | None:
    """A filter from Mongo-like JSON, as `json.loads` returns it.

    `{"year": {"$gte": 2024}}`, `{"lang": "de"}` (equal to), `{"tag": {"$in": ["a", "b"]}}`; several
    fields in one object, and several operators on one field, must all hold; `{"$and": […]}`,
    `{"$or": […]}`, `{"$not": {…}}`, and `{"year": {"$not": {…}}}`. `None` and `{}` mean no filter.
    A field is named by 1 to 128 characters that do not begin with `$`.

    Raises:
        InvalidFilter: An unknown operator, a wrong type, an empty list of conditions, more than 8
            levels or 64 conditions or 1000 values; the message names the operator or the field.
    """
    if raw is None or raw == {}:
        return None
    return _Parser().filter(raw, depth=1)


def matches(condition: Filter, metadata: Metadata) -> bool:
    """Whether a document with `metadata` passes. Every store's own filtering must give the same result.

    A missing field is `null`. `$eq` and `$in` hold for a list if they do for one of its elements
    (for the list `[]`, never); `$ne` and `$nin` are their opposites. Equality is typed: numbers
    equal numbers, true is not 1. The orders compare number with number and string with string (by
    code point) and are false for anything else, lists included.
    """
    if isinstance(condition, Combination):
        held = (matches(operand, metadata) for operand in condition.operands)
        if condition.op == "$and":
            return all(held)
        if condition.op == "$or":
            return any(held)
        return not next(held)

    actual, wanted = metadata.get(condition.field), condition.value
    match condition.op:
        case "$eq" | "$in":
            return _holds_any(actual, wanted)
        case "$ne" | "$nin":
            return not _holds_any(actual, wanted)
        case "$gt" | "$gte" | "$lt" | "$lte":
            return _in_order(actual, condition.op, wanted)


def _holds_any(actual: object, wanted: MetadataValue | tuple[MetadataValue, ...]) -> bool:
    values = actual if isinstance(actual, list) else [actual]
    choices = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(_kind(value) == _kind(choice) and value == choice for value in values for choice in choices)


def _in_order(actual: Any, op: str, wanted: Any) -> bool:
    if _kind(actual) != _kind(wanted) or _kind(wanted) not in ("number", "string"):
        return False
    match op:
        case "$gt":
            return bool(actual > wanted)
        case "$gte":
            return bool(actual >= wanted)
        case "$lt":
            return bool(actual < wanted)
        case _:
            return bool(actual <= wanted)


def _kind(value: object) -> str:
    """The JSON type of a value, because Python has `True == 1`."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "null" if value is None else "other"


class _Parser:
    """Walks one filter and counts its conditions."""

    def __init__(self) -> None:
        self._conditions = 0

    def filter(self, raw: object, *, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise InvalidFilter(f"The filter is nested more than {MAX_DEPTH} levels deep.")
        if not isinstance(raw, dict):
            raise InvalidFilter(f"A filter must be an object, not {_described(raw)}.")
        if not raw:
            raise InvalidFilter("A condition inside the filter is empty.")
        parts: list[Filter] = []
        for name, value in raw.items():
            if isinstance(name, str) and name.startswith("$"):
                parts.append(self._combination(name, value, depth=depth))
            else:
                parts.append(self._field(_field_name(name), value, depth=depth))
        return _all_of(parts)

    def _combination(self, op: str, raw: object, *, depth: int) -> Filter:
        if op == "$not":
            return Combination("$not", (self.filter(raw, depth=depth + 1),))
        if op not in ("$and", "$or"):
            if op in _COMPARING:
                raise InvalidFilter(f'The operator "{op}" needs a field, as in {{"year": {{"{op}": …}}}}.')
            raise InvalidFilter(f"Unknown operator {_quoted(op)}.")
        if not isinstance(raw, list) or not raw:
            raise InvalidFilter(f'The operator "{op}" needs a list of at least one condition.')
        operands = tuple(self.filter(operand, depth=depth + 1) for operand in raw)
        return Combination("$and" if op == "$and" else "$or", operands)

    def _field(self, field: str, raw: object, *, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise InvalidFilter(f"The filter is nested more than {MAX_DEPTH} levels deep.")
        if not isinstance(raw, dict):
            return self._comparison(field, "$eq", raw)
        if not raw:
            raise InvalidFilter(f"The field {_quoted(field)} has no condition.")
        parts: list[Filter] = []
        for op, value in raw.items():
            if op == "$not":
                if not isinstance(value, dict):
                    raise InvalidFilter(f'The operator "$not" on the field {_quoted(field)} needs an object.')
                parts.append(Combination("$not", (self._field(field, value, depth=depth + 1),)))
            elif op in _COMPARING:
                parts.append(self._comparison(field, op, value))
            else:
                raise InvalidFilter(f"Unknown operator {_quoted(op)} on the field {_quoted(field)}.")
        return _all_of(parts)

    def _comparison(self, field: str, op: _Comparing, raw: object) -> Comparison:
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise InvalidFilter(f"The filter has more than {MAX_CONDITIONS} conditions.")
        if op in _LISTS:
            if not isinstance(raw, list):
                _refuse(field, op, f"a list, not {_described(raw)}")
            if len(raw) > MAX_LIST:
                _refuse(field, op, f"at most {MAX_LIST} values")
            return Comparison(field, op, tuple(_scalar(field, op, value) for value in raw))
        value = _scalar(field, op, raw)
        if op in _ORDERS and _kind(value) not in ("number", "string"):
            _refuse(field, op, f"a number or a string, not {_described(raw)}")
        return Comparison(field, op, value)


def _all_of(parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else Combination("$and", tuple(parts))


def _field_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_FIELD_CHARS or not _storable(name):
        raise InvalidFilter(f"A field name must be 1 to {MAX_FIELD_CHARS} characters of text.")
    return name


def _scalar(field: str, op: str, value: object) -> MetadataValue:
    if isinstance(value, list):
        _refuse(field, op, 'one value; for several use "$in"')
    if not isinstance(value, str | int | float | bool | None):
        _refuse(field, op, f"a string, a number, a boolean or null, not {_described(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(field, op, "a finite number")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:  # the range of SQL's integers
        _refuse(field, op, "a number within 64 bits")
    if isinstance(value, str) and not _storable(value):
        _refuse(field, op, "text without NUL or half characters")
    return value


def _refuse(field: str, op: str, wanted: str) -> NoReturn:
    raise InvalidFilter(f'The operator "{op}" on the field {_quoted(field)} needs {wanted}.')


def _storable(text: str) -> bool:
    """Whether any store could hold `text`: no NUL (PostgreSQL), no lone surrogates (UTF-8)."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _quoted(name: object) -> str:
    """Quotes a name for a message: short and printable."""
    shown = str(name)
    shown = shown if len(shown) <= 40 else shown[:39] + "…"
    return '"' + shown.encode("utf-8", "replace").decode() + '"'


def _described(value: object) -> str:
    names = {"boolean": "a boolean", "number": "a number", "string": "a string", "null": "null"}
    return names.get(_kind(value), "a list" if isinstance(value, list) else "an object")
