"""Where a list goes on: the sort key of its last row, opaque to callers."""

import base64
import json

from app.errors import InvalidRequest


def encode_cursor(*position: float | int | str) -> str:
    """The cursor of a row by its sort key."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type) -> tuple[float | int | str, ...]:
    """The sort key inside `cursor`, one value per kind (`float` also takes whole numbers).

    Raises:
        InvalidRequest: This is no cursor of this list.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The cursor is not one this list gave out.", param="cursor") from error
    if not isinstance(position, list) or [_kind(value) for value in position] != [_kind(kind()) for kind in kinds]:
        raise InvalidRequest("The cursor is not one this list gave out.", param="cursor")
    return tuple(position)


def _kind(value: object) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
