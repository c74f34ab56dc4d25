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
    if not isinstance(position, list) or len(position) != len(kinds) or not all(map(_is_a, position, kinds)):
        raise InvalidRequest("The cursor is not one this list gave out.", param="cursor")
    return tuple(position)


def _is_a(value: object, kind: type) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)
