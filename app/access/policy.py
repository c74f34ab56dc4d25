"""Which role a route needs: one table, read before a request's body is, and denying what it does not list."""

import re

from app.types import Role

_PUBLIC = frozenset({"/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"})
_RANK = {Role.READER: 0, Role.MEMBER: 1, Role.ADMIN: 2}

# First match wins. POSTs that only read (ask, search, …) are a reader's, and so are everyone's own conversations;
# other writes are a member's.
_RULES: tuple[tuple[str, re.Pattern[str], Role], ...] = (
    ("*", re.compile(r"/v1/admin(/|$)"), Role.ADMIN),
    ("POST", re.compile(r"/v1/(search|ask|chat/completions|tokens/count)$"), Role.READER),
    ("POST", re.compile(r"/v1/requests/[^/]+/cancel$"), Role.READER),
    ("*", re.compile(r"/v1/conversations(/|$)"), Role.READER),
    ("GET", re.compile(r"/v1/"), Role.READER),
    ("*", re.compile(r"/v1/(documents|collections|jobs)(/|$)"), Role.MEMBER),
    ("*", re.compile(r""), Role.ADMIN),
)


def is_public(path: str) -> bool:
    """Whether a path is served without a key: health, metrics and the API's own documentation."""
    return path in _PUBLIC or path.startswith("/docs/")


def required_role(method: str, path: str) -> Role:
    """The least role that may call `method path`; whatever no rule names needs an administrator."""
    method = "GET" if method in {"HEAD", "OPTIONS"} else method
    return next(role for verb, pattern, role in _RULES if verb in {"*", method} and pattern.match(path))


def allows(role: Role, required: Role) -> bool:
    """Whether `role` includes `required`."""
    return _RANK[role] >= _RANK[required]
