"""Bounds the errors of a body with very many unknown fields: pydantic makes one for each, 1.2 KB in size."""

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

MORE_UNKNOWN = "more_unknown"
"""The type of the error for the unknown fields that are not named; `ctx["count"]` is their number."""

_NAMED = 20


def refuse_many_unknown(values: object, model: type[BaseModel]) -> None:
    """Refuse a body with more than 20 unknown fields, and name the first 20. pydantic refuses a body with fewer.

    Raises:
        ValidationError: There are more than 20 unknown fields.
    """
    if not isinstance(values, Mapping) or len(values) <= _NAMED:
        return
    known = {field.alias or name for name, field in model.model_fields.items()}
    unknown = [name for name in values if name not in known]
    if len(unknown) <= _NAMED:
        return
    errors = [InitErrorDetails(type="extra_forbidden", loc=(name,), input=None) for name in unknown[:_NAMED]]
    count = len(unknown) - _NAMED
    more = PydanticCustomError(MORE_UNKNOWN, "{count} more fields are not permitted", {"count": count})
    raise ValidationError.from_exception_data(
        model.__name__, [*errors, InitErrorDetails(type=more, loc=(), input=None)]
    )
