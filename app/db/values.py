"""Values that both databases can store: text without NUL, JSON numbers of 64 bits; digests of secrets."""

import hashlib
import math
from collections.abc import Mapping
from enum import Enum
from typing import Final

from app.errors import InvalidRequest
from retrieval.types import Metadata, MetadataValue

_INT64 = range(-(1 << 63), 1 << 63)


def require_text(text: str, *, param: str) -> None:
    """Check that `text` can be stored.

    Raises:
        InvalidRequest: It holds NUL or a lone surrogate.
    """
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidRequest(f"The field {param} holds a character that cannot be stored.", param=param)


def require_metadata(metadata: Metadata) -> None:
    """Check that `metadata` is a mapping of names to JSON scalars and lists of them.

    Raises:
        InvalidRequest: A value is of another type, not finite, or an integer beyond 64 bits.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidRequest("metadata must be an object.", param="metadata")
    for name, value in metadata.items():
        require_text(name, param="metadata")
        for item in value if isinstance(value, list) else [value]:
            _require_value(item)


def _require_value(value: MetadataValue) -> None:
    match value:
        case None | bool():
            return
        case str():
            require_text(value, param="metadata")
        case int() if value in _INT64:
            return
        case float() if math.isfinite(value):
            return
        case _:
            raise InvalidRequest(
                "A metadata value must be text, a finite 64-bit number, true, false, null or a list of these.",
                param="metadata",
            )


class Keep(Enum):
    """The type of `KEEP`."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


def digest_of(secret: str) -> str:
    """64 hexadecimal digits."""
    # a header may hold any bytes; text that is not Unicode never matches a secret
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
