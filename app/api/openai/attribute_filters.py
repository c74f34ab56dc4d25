"""OpenAI's attribute filters as ours."""

from collections.abc import Mapping

from retrieval.errors import InvalidFilter
from retrieval.filters import MAX_DEPTH

_COMPARING = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"})
_COMBINING = frozenset({"and", "or"})


def translated(raw: object, *, depth: int = 1) -> dict[str, object]:
    """`{"type": "gte", "key": "year", "value": 2024}` as `{"year": {"$gte": 2024}}`, and combinations of such.

    What stands in the result is for `parse_filter` to judge.

    Raises:
        InvalidFilter: A member is missing or unknown, or it is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise InvalidFilter(f"The filter is nested more than {MAX_DEPTH} levels deep.")
    if not isinstance(raw, Mapping):
        raise InvalidFilter("A filter must be an object.")
    kind = raw.get("type")
    if kind in _COMPARING and set(raw) == {"type", "key", "value"}:
        key = raw["key"]
        if not isinstance(key, str) or key.startswith("$"):
            raise InvalidFilter("The 'key' of a filter must be the name of an attribute, and not begin with '$'.")
        return {key: {f"${kind}": raw["value"]}}
    if kind in _COMBINING and set(raw) == {"type", "filters"} and isinstance(raw["filters"], list):
        return {f"${kind}": [translated(one, depth=depth + 1) for one in raw["filters"]]}
    raise InvalidFilter(
        "A filter has 'type' (eq, ne, gt, gte, lt, lte, in, nin), 'key' and 'value', or 'type' (and, or) and 'filters'."
    )
