"""Query parameters that are lists, in every way clients write them."""

from collections.abc import Iterable

from fastapi import Request

from app.errors import InvalidRequest


def refuse_unknown(request: Request, *, lists: Iterable[str], single: Iterable[str]) -> None:
    """Refuse a parameter that is none of these: a filter with a typo would show everybody's.

    Raises:
        InvalidRequest: There is one; `param` names it.
    """
    lists = [*lists]
    known = {*single, *lists, *(f"{name}[]" for name in lists)}
    for key in request.query_params:
        if key not in known:
            raise InvalidRequest(f"There is no parameter '{key[:64]}'.", param=key[:64])


def listed(request: Request, name: str, plain: list[str] | None) -> list[str]:
    """Values of `name=…&name=…`, `name[]=…` and `name=a,b`."""
    values = [*(plain or []), *request.query_params.getlist(f"{name}[]")]
    return [part for value in values for part in value.split(",") if part]
