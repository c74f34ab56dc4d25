"""What a metadata filter means and which are refused, as `retrieval.filters` describes it: the fuzzer's reference.

It reads the JSON of a filter directly, one document at a time, and shares no code with what it judges.
"""

import math
from collections.abc import Iterator
from typing import Any

LEVELS, CONDITIONS, VALUES, NAME_CHARS = 8, 64, 1000, 128
_EQUAL, _LISTS, _ORDERS = ("$eq", "$ne"), ("$in", "$nin"), ("$gt", "$gte", "$lt", "$lte")


def is_valid(raw: object) -> bool:
    """Whether a filter is taken; None and {} are no filter, and taken."""
    if raw is None or raw == {}:
        return True
    return _is_filter(raw, level=1) and sum(1 for _ in _comparisons(raw)) <= CONDITIONS


def keeps(raw: Any, metadata: dict[str, Any]) -> bool:
    """Whether a valid filter keeps a document with these fields."""
    return all(_holds(name, wanted, metadata) for name, wanted in (raw or {}).items())


def _holds(name: str, wanted: Any, metadata: dict[str, Any]) -> bool:
    if name == "$and":
        return all(keeps(one, metadata) for one in wanted)
    if name == "$or":
        return any(keeps(one, metadata) for one in wanted)
    if name == "$not":
        return not keeps(wanted, metadata)
    return _field_holds(metadata.get(name), wanted)


def _field_holds(actual: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return _equals(actual, wanted)
    return all(_operator_holds(actual, op, value) for op, value in wanted.items())


def _operator_holds(actual: Any, op: str, value: Any) -> bool:
    match op:
        case "$not":
            return not _field_holds(actual, value)
        case "$eq":
            return _equals(actual, value)
        case "$ne":
            return not _equals(actual, value)
        case "$in":
            return any(_equals(actual, one) for one in value)
        case "$nin":
            return not any(_equals(actual, one) for one in value)
    if _type(actual) != _type(value) or _type(value) not in {"number", "text"}:
        return False
    if actual == value:
        return op in {"$gte", "$lte"}
    return (op in {"$gt", "$gte"}) is bool(actual > value)


def _equals(actual: Any, value: Any) -> bool:
    members = actual if isinstance(actual, list) else [actual]
    return any(_type(member) == _type(value) and member == value for member in members)


def _type(value: Any) -> str:
    kinds = {bool: "truth", int: "number", float: "number", str: "text", type(None): "null"}
    return kinds.get(type(value), "other")


def _is_filter(raw: Any, *, level: int) -> bool:
    if level > LEVELS or not isinstance(raw, dict) or not raw:
        return False
    for name, value in raw.items():
        if name in {"$and", "$or"}:
            if not (isinstance(value, list) and value and all(_is_filter(one, level=level + 1) for one in value)):
                return False
        elif name == "$not":
            if not _is_filter(value, level=level + 1):
                return False
        elif not (_is_name(name) and _is_condition(value, level=level)):
            return False
    return True


def _is_name(name: str) -> bool:
    return not name.startswith("$") and 1 <= len(name) <= NAME_CHARS and _storable(name)


def _is_condition(value: Any, *, level: int) -> bool:
    """Whether it is a value to equal, or an object of operators."""
    if not isinstance(value, dict):
        return _is_value(value)
    if not value or level > LEVELS:
        return False
    for op, operand in value.items():
        if op == "$not":
            fits = isinstance(operand, dict) and _is_condition(operand, level=level + 1)
        elif op in _LISTS:
            fits = isinstance(operand, list) and len(operand) <= VALUES and all(map(_is_value, operand))
        elif op in _ORDERS:
            fits = _type(operand) in {"number", "text"} and _is_value(operand)
        else:
            fits = op in _EQUAL and _is_value(operand)
        if not fits:
            return False
    return True


def _is_value(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or (isinstance(value, str) and _storable(value))


def _storable(text: str) -> bool:
    return "\0" not in text and not any(0xD800 <= ord(char) <= 0xDFFF for char in text)


def _comparisons(raw: Any) -> Iterator[object]:
    """Each comparison of a filter that is well formed."""
    for name, value in raw.items():
        if name in {"$and", "$or"}:
            for one in value:
                yield from _comparisons(one)
        elif name == "$not":
            yield from _comparisons(value)
        else:
            yield from _of_field(value)


def _of_field(value: Any) -> Iterator[object]:
    if not isinstance(value, dict):
        yield value
        return
    for op, operand in value.items():
        if op == "$not":
            yield from _of_field(operand)
        else:
            yield operand
