"""Who may call a route: one table, read before a request's body is, and denying what it does not list."""

import re
from enum import Enum

from app.types import Principal, Role

_PUBLIC = frozenset({"/", "/icon.svg", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"})
_SIGNING_IN = frozenset(
    {("POST", "/v1/session"), ("GET", "/v1/session/oidc/login"), ("GET", "/v1/session/oidc/callback")}
)
_RANK = {Role.READER: 0, Role.MEMBER: 1, Role.ADMIN: 2}

# First match wins. POSTs that only read (ask, search, …) are a reader's, and so are everyone's own conversations,
# feedback and session; other writes are a member's.
_RULES: tuple[tuple[str, re.Pattern[str], Role], ...] = (
    ("*", re.compile(r"/v1/admin(/|$)"), Role.ADMIN),
    ("*", re.compile(r"/v1/session$"), Role.READER),
    (
        "POST",
        re.compile(r"/v1/(search|ask|chat/completions|embeddings|tokens/count|vector_stores/[^/]+/search)$"),
        Role.READER,
    ),
    ("POST", re.compile(r"/v1/requests/[^/]+/cancel$"), Role.READER),
    ("*", re.compile(r"/v1/requests/[^/]+/feedback$"), Role.READER),
    ("*", re.compile(r"/v1/conversations(/|$)"), Role.READER),
    ("GET", re.compile(r"/v1/"), Role.READER),
    ("*", re.compile(r"/v1/(documents|collections|jobs|files|vector_stores)(/|$)"), Role.MEMBER),
    ("*", re.compile(r""), Role.ADMIN),
)

# What concerns every tenant: the operator's alone. Prices and generations may be read by every administrator.
_OPERATING: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("*", re.compile(r"/v1/admin/tenants(/|$)")),
    ("*", re.compile(r"/v1/admin/reconcile(/|$)")),
    ("*", re.compile(r"/v1/admin/usage/(rebuild|reconciliation)(/|$)")),
    ("POST", re.compile(r"/v1/admin/(prices|generations)(/|$)")),
    ("PUT", re.compile(r"/v1/admin/limits/tenants(/|$)")),
    ("DELETE", re.compile(r"/v1/admin/limits/tenants(/|$)")),
)

# Reports, budgets, users and the like tell of every collection. Keys within its own limit a limited key may manage.
_WHOLE_TENANT = re.compile(r"/v1/admin/(?!keys(/|$))")


def is_public(path: str, method: str = "GET") -> bool:
    """Whether a request is served without a key: health, metrics, the page, the API's documentation, signing in."""
    return path in _PUBLIC or path.startswith(("/docs/", "/assets/")) or (method, path) in _SIGNING_IN


def required_role(method: str, path: str) -> Role:
    """The least role that may call `method path`; whatever no rule names needs an administrator."""
    method = _verb(method)
    return next(role for verb, pattern, role in _RULES if verb in {"*", method} and pattern.match(path))


def needs_operator(method: str, path: str) -> bool:
    """Whether a route concerns every tenant, so that a tenant's own administrator may not call it."""
    method = _verb(method)
    return any(verb in {"*", method} and pattern.match(path) for verb, pattern in _OPERATING)


def allows(role: Role, required: Role) -> bool:
    """Whether `role` includes `required`."""
    return _RANK[role] >= _RANK[required]


def refusal(principal: Principal, method: str, path: str) -> str | None:
    """Why the principal may not call `method path`, in a sentence; None where it may."""
    role = required_role(method, path)
    if not allows(principal.role, role):
        return f"This needs a key with the role '{role}'."
    if needs_operator(method, path) and not principal.is_operator:
        return "This concerns the whole installation: it needs an administrator's key of the first tenant."
    if principal.collections is not None and _WHOLE_TENANT.match(path):
        return "This concerns the whole tenant: it needs a key that is not limited to collections."
    return None


def _verb(method: str) -> str:
    return "GET" if method in {"HEAD", "OPTIONS"} else method


_GENERATING = re.compile(r"/v1/(ask|chat/completions)/?$")
_FINDING = re.compile(r"/v1/(search|embeddings|tokens/count|vector_stores/[^/]+/search)/?$")
_TAKING_IN = re.compile(r"/v1/(documents(/[^/]+)?|files|vector_stores/[^/]+/files)/?$")


class Admitted(Enum):
    """What a request needs: a seat and a turn, a turn, to be counted only, or nothing."""

    GENERATING = "generating"
    FINDING = "finding"
    COUNTED = "counted"
    FREELY = "freely"


def admitted(method: str, path: str) -> Admitted:
    """How `method path` is admitted. Whatever works for a caller is limited; looking things up is not."""
    if method == "POST" and _GENERATING.match(path):
        return Admitted.GENERATING
    if method == "POST" and _FINDING.match(path):
        return Admitted.FINDING
    if method in {"POST", "PUT"} and _TAKING_IN.match(path) and not path.endswith("/delete"):
        return Admitted.COUNTED
    return Admitted.FREELY
