"""The largest request body of each route, from its row in the route table."""

from starlette.datastructures import Headers
from starlette.types import Scope

from app.access.routes import BodyKind, RouteReach, rule_for
from app.api.root_path import route_path

KIB, MIB = 1 << 10, 1 << 20

PUBLIC_BYTES = 16 * KIB
"""Largest body of a request without a key, in bytes: sign-ins and invitations."""

JSON_BYTES = {BodyKind.JSON: MIB, BodyKind.TEXTS: 2 * MIB, BodyKind.FILE: 4 * MIB, BodyKind.SENT: 8 * MIB}
"""Largest JSON body by kind, in bytes; of `sent` unless the settings say otherwise. A larger text is sent as a file."""

_FRAMING_BYTES = MIB  # of a multipart upload besides its file


def body_limit(scope: Scope, *, file_bytes: int, sent_bytes: int = JSON_BYTES[BodyKind.SENT]) -> int:
    """The largest body of a request in bytes, where a file may have `file_bytes`, one with documents `sent_bytes`.

    A route that reads JSON has the limit of JSON whatever the Content-Type says: it would hold the body in memory.
    """
    rule = rule_for(scope["method"], route_path(scope))
    if rule.reach is RouteReach.PUBLIC:
        return PUBLIC_BYTES
    kind = json_kind(scope)
    if kind is BodyKind.SENT:
        return sent_bytes
    return file_bytes + _FRAMING_BYTES if kind is None else JSON_BYTES[kind]


def json_kind(scope: Scope) -> BodyKind | None:
    """The kind of JSON body that the route of a request reads; None where it reads a multipart form."""
    kind = rule_for(scope["method"], route_path(scope)).body
    return None if kind is BodyKind.FILE and is_multipart(scope) else kind


def is_multipart(scope: Scope) -> bool:
    """Whether the request says that its body is a multipart form."""
    return Headers(scope=scope).get("content-type", "").startswith("multipart/form-data")


def readable_size(size: int) -> str:
    """A limit in bytes as text.

    Example:
        >>> readable_size(16 << 10), readable_size(4 << 20)
        ('16 KiB', '4 MiB')
    """
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size // KIB} KiB"
