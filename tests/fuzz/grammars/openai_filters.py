"""Metadata filters in OpenAI's form, made of those in ours, and what such a filter means.

Their form has no `$not`, and one operator a field. What it cannot say is written in the same style, and is invalid.
"""

from typing import Any

INVALID: dict[str, Any] = {"$invalid": 1}
"""A filter in our form that is always refused."""

_COMPARING = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"})


def in_openai_form(raw: Any) -> Any:
    """A filter of our form in theirs; what is no filter stays as it is."""
    if not isinstance(raw, dict) or not raw:
        return raw
    parts = [part for name, value in raw.items() for part in _parts(name, value)]
    return parts[0] if len(parts) == 1 else {"type": "and", "filters": parts}


def in_our_form(raw: Any) -> Any:
    """What a filter in their form means, in ours."""
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        return INVALID
    kind = raw["type"]
    if kind in {"and", "or"} and set(raw) == {"type", "filters"} and isinstance(raw["filters"], list):
        return {f"${kind}": [in_our_form(one) for one in raw["filters"]]}
    if kind in _COMPARING and set(raw) == {"type", "key", "value"} and not raw["key"].startswith("$"):
        return {raw["key"]: {f"${kind}": raw["value"]}}
    return INVALID


def _parts(name: str, value: Any) -> list[Any]:
    if name.startswith("$"):
        inner = [in_openai_form(one) for one in value] if isinstance(value, list) else in_openai_form(value)
        return [{"type": name[1:], "filters": inner}]
    if isinstance(value, dict):
        return [{"type": op.removeprefix("$"), "key": name, "value": operand} for op, operand in value.items()]
    return [{"type": "eq", "key": name, "value": value}]
