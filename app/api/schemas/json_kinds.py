"""Strict JSON types: refuses booleans for numbers, and strings for either, which pydantic would convert."""

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

_NUMBERS = frozenset({int, float})
_SPELLED = frozenset({int, float, bool})  # types that pydantic also reads from a string


def refuse_other_kinds(values: object, model: type[BaseModel]) -> None:
    """Refuse `true` for a number, `1` for a boolean and `"1"` for either, in a field of `model` or in its list.

    A number without a fraction is an integer however it is written: `5.0` is 5.

    The schemas in `/openapi.json` do not allow them (JSON Schema 2020-12, Validation, section 6.1.1). `values` is the
    body as it was sent; anything but an object is left to pydantic.

    Raises:
        ValidationError: A value has another JSON type than its field.
    """
    if not isinstance(values, Mapping):
        return
    wrong = [
        InitErrorDetails(type=PydanticCustomError("other_kind", expected), loc=(name,), input=values[name])
        for name, kinds in _fields_of(model).items()
        if name in values and (expected := _expected(values[name], kinds)) is not None
    ]
    if wrong:
        raise ValidationError.from_exception_data(model.__name__, wrong)


def _expected(value: object, kinds: frozenset[type]) -> Any:
    """The error message for a value of the wrong type; None where pydantic validates it."""
    types = dict.fromkeys(map(type, value)) if isinstance(value, list) else (type(value),)  # a list may be very long
    for given in types:
        if issubclass(given, bool) and bool not in kinds:
            return "Input should not be a boolean"
        if issubclass(given, int | float) and not issubclass(given, bool) and not kinds & _NUMBERS:
            return "Input should not be a number"
        if issubclass(given, str) and kinds <= _SPELLED:
            return "Input should not be a string"
    return None


@cache
def _fields_of(model: type[BaseModel]) -> dict[str, frozenset[type]]:
    """The types of fields that may hold numbers or booleans, or lists of them, by their name in the body."""
    every = {field.alias or name: frozenset(_kinds(field.annotation)) for name, field in model.model_fields.items()}
    return {name: kinds for name, kinds in every.items() if kinds & _SPELLED and object not in kinds}


def _kinds(annotation: Any) -> set[type]:
    """The scalar types of an annotation or of its list items, without `None`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kinds(arguments[0])
    if origin is Literal:
        return {type(value) for value in arguments}
    if origin in {Union, UnionType, list, tuple}:
        return set[type]().union(*(_kinds(argument) for argument in arguments))
    if annotation is None or annotation is type(None) or annotation is Ellipsis:
        return set()
    return {annotation if isinstance(annotation, type) else object}
