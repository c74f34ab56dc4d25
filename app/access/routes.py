"""The route table: for every route the role it needs, its reach, its admission control and its error format.

The request gate looks a request up here by method and path, before anything of its body is read. Paths are matched
with the router's own patterns. A request that no row covers reaches no route, and is denied by default. Every new
route needs a row; `tests/app/access/test_routes.py` fails without one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from starlette.routing import compile_path

from app.types import Principal, Role


class RouteReach(Enum):
    """The data that a route reads or changes, which decides the keys it is open to."""

    PUBLIC = "public"
    """No tenant's data: open without a key."""
    KEY = "key"
    """The caller's tenant, within the collections that the key is limited to."""
    TENANT = "tenant"
    """The caller's whole tenant: closed to keys that are limited to collections."""
    INSTALLATION = "installation"
    """Every tenant: open to the operator alone, an administrator of the first tenant."""


class AdmissionControl(Enum):
    """The limits that a request passes before its route runs."""

    GENERATION = "generation"
    """Rate limits, then a place among the answers that are generated at once, then a thread."""
    RETRIEVAL = "retrieval"
    """Rate limits, then a thread."""
    RATE_LIMITS = "rate limits"
    """Rate limits alone."""
    NONE = "none"
    """No limits: reads and small changes."""


class BodyKind(Enum):
    """The kind of body that a route reads, which decides its largest size. Routes without a key read a small one."""

    JSON = "json"
    """A JSON object."""
    TEXTS = "texts"
    """A JSON object with many texts."""
    FILE = "file"
    """A multipart form with a file, or a JSON object with a text."""
    SENT = "sent"
    """A JSON object with whole documents."""


@dataclass(frozen=True, slots=True)
class RouteRule:
    """One row of the table.

    Args:
        methods: HTTP methods, separated by spaces. GET includes HEAD and OPTIONS; `*` is every method.
        path: The route's template, as in `@router.get`: `/v1/documents/{document_id}`.
        role: The least role that may call it.
        reach: The data it reads or changes.
        admission: The limits that its requests pass.
        body: The kind of body that it reads.
        openai: Whether its errors also have the `error` object of OpenAI's protocol.
        secret: Whether its response holds a secret, which the server never stores.
    """

    methods: str
    path: str
    role: Role
    reach: RouteReach = RouteReach.KEY
    admission: AdmissionControl = AdmissionControl.NONE
    body: BodyKind = BodyKind.JSON
    openai: bool = False
    secret: bool = False


_READER, _MEMBER, _ADMIN = Role.READER, Role.MEMBER, Role.ADMIN
_PUBLIC, _TENANT, _INSTALLATION = RouteReach.PUBLIC, RouteReach.TENANT, RouteReach.INSTALLATION
_GENERATION, _RETRIEVAL, _RATE_LIMITS = (
    AdmissionControl.GENERATION,
    AdmissionControl.RETRIEVAL,
    AdmissionControl.RATE_LIMITS,
)
_TEXTS, _FILE = BodyKind.TEXTS, BodyKind.FILE
_MESSAGES = "/v1/messages"

# POSTs that only read (ask, search, …) need a reader, and so do the caller's own conversations, watches, tables,
# feedback and session.
ROUTES: tuple[RouteRule, ...] = (
    # The web page, its files, the API's documentation, health
    RouteRule("*", "/", _READER, _PUBLIC),
    RouteRule("*", "/icon.svg", _READER, _PUBLIC),
    RouteRule("*", "/assets/{path:path}", _READER, _PUBLIC),
    RouteRule("*", "/docs", _READER, _PUBLIC),
    RouteRule("*", "/docs/oauth2-redirect", _READER, _PUBLIC),
    RouteRule("*", "/docs/static/{path:path}", _READER, _PUBLIC),
    RouteRule("*", "/openapi.json", _READER, _PUBLIC),
    RouteRule("*", "/healthz", _READER, _PUBLIC),
    RouteRule("*", "/readyz", _READER, _PUBLIC),
    RouteRule("*", "/metrics", _READER, _PUBLIC),
    # Sessions
    RouteRule("POST", "/v1/session", _READER, _PUBLIC),
    RouteRule("GET DELETE", "/v1/session", _READER),
    RouteRule("GET", "/v1/session/state", _READER, _PUBLIC),
    RouteRule("GET", "/v1/session/oidc/login", _READER, _PUBLIC),
    RouteRule("GET", "/v1/session/oidc/callback", _READER, _PUBLIC),
    RouteRule("POST", "/v1/invitations/preview", _READER, _PUBLIC),
    RouteRule("POST", "/v1/invitations/accept", _READER, _PUBLIC, secret=True),
    # Documents
    RouteRule("GET", "/v1/documents", _READER),
    RouteRule("POST", "/v1/documents", _MEMBER, admission=_RATE_LIMITS, body=_FILE),
    RouteRule("POST", "/v1/documents/delete", _MEMBER),
    RouteRule("GET", "/v1/documents/{document_id}", _READER),
    RouteRule("PUT", "/v1/documents/{document_id}", _MEMBER, admission=_RATE_LIMITS, body=_FILE),
    RouteRule("PATCH DELETE", "/v1/documents/{document_id}", _MEMBER),
    RouteRule("POST", "/v1/documents/{document_id}/retry", _MEMBER),
    RouteRule("GET", "/v1/documents/{document_id}/versions", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/events", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/content", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/pages/{number}", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/chunks", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/boxes", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/find", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/compare", _READER, admission=_RETRIEVAL),
    RouteRule("GET", "/v1/documents/{document_id}/overview", _READER),
    RouteRule("GET", "/v1/documents/{document_id}/file", _READER),
    RouteRule("GET", "/v1/jobs", _READER),
    RouteRule("GET", "/v1/jobs/{job_id}", _READER),
    RouteRule("POST", "/v1/jobs/{job_id}/cancel", _MEMBER),
    RouteRule("GET", "/v1/collections", _READER),
    RouteRule("POST", "/v1/collections", _MEMBER),
    RouteRule("GET", "/v1/collections/{collection_id}", _READER),
    RouteRule("PATCH DELETE", "/v1/collections/{collection_id}", _MEMBER),
    RouteRule("POST", "/v1/collections/{collection_id}/reindex", _MEMBER),
    # Questions and answers
    RouteRule("POST", "/v1/search", _READER, admission=_RETRIEVAL),
    RouteRule("POST", "/v1/ask", _READER, admission=_GENERATION),
    RouteRule("POST", "/v1/tokens/count", _READER, admission=_RETRIEVAL),
    RouteRule("POST", "/v1/requests/{id}/cancel", _READER),
    RouteRule("POST DELETE", "/v1/requests/{id}/feedback", _READER),
    RouteRule("GET", "/v1/answers/{id}/receipt", _READER, admission=_RATE_LIMITS),
    RouteRule("*", "/.well-known/footnote-keys.json", _READER, _PUBLIC),
    RouteRule("GET POST", "/v1/conversations", _READER),
    RouteRule("GET PATCH DELETE", "/v1/conversations/{conversation_id}", _READER),
    RouteRule("GET", "/v1/conversations/{conversation_id}/export", _READER),
    RouteRule("GET POST", "/v1/watches", _READER),
    RouteRule("GET PATCH DELETE", "/v1/watches/{watch_id}", _READER),
    RouteRule("GET", "/v1/watches/{watch_id}/events", _READER),
    RouteRule("GET POST", "/v1/tables", _READER),
    RouteRule("GET DELETE", "/v1/tables/{table_id}", _READER),
    RouteRule("POST", "/v1/tables/{table_id}/resume", _READER),
    RouteRule("GET", "/v1/usage", _READER),
    # Anthropic's protocol
    RouteRule("POST", _MESSAGES, _READER, admission=_GENERATION, body=BodyKind.SENT),
    # The Model Context Protocol, whose tools have the rows of the routes with the same effect
    RouteRule("*", "/mcp", _READER, body=_TEXTS),
    RouteRule("*", "/.well-known/oauth-protected-resource", _READER, _PUBLIC),
    RouteRule("*", "/.well-known/oauth-protected-resource/mcp", _READER, _PUBLIC),
    # OpenAI's protocol
    RouteRule("POST", "/v1/chat/completions", _READER, admission=_GENERATION, openai=True),
    RouteRule("POST", "/v1/responses", _READER, admission=_GENERATION, openai=True),
    RouteRule("GET DELETE", "/v1/responses/{response_id}", _READER, openai=True),
    RouteRule("POST", "/v1/responses/{response_id}/cancel", _READER, openai=True),
    RouteRule("GET", "/v1/responses/{response_id}/input_items", _READER, openai=True),
    RouteRule("POST", "/v1/embeddings", _READER, admission=_RETRIEVAL, body=_TEXTS, openai=True),
    RouteRule("GET", "/v1/models", _READER, openai=True),
    RouteRule("GET", "/v1/models/offered", _ADMIN, openai=True),
    RouteRule("GET", "/v1/models/{model:path}", _READER, openai=True),
    RouteRule("GET", "/v1/files", _READER, openai=True),
    RouteRule("POST", "/v1/files", _MEMBER, admission=_RATE_LIMITS, body=_FILE, openai=True),
    RouteRule("GET", "/v1/files/{file_id}", _READER, openai=True),
    RouteRule("DELETE", "/v1/files/{file_id}", _MEMBER, openai=True),
    RouteRule("GET", "/v1/files/{file_id}/content", _READER, openai=True),
    RouteRule("GET", "/v1/vector_stores", _READER, openai=True),
    RouteRule("POST", "/v1/vector_stores", _MEMBER, openai=True),
    RouteRule("GET", "/v1/vector_stores/{vector_store_id}", _READER, openai=True),
    RouteRule("POST DELETE", "/v1/vector_stores/{vector_store_id}", _MEMBER, openai=True),
    RouteRule("POST", "/v1/vector_stores/{vector_store_id}/search", _READER, admission=_RETRIEVAL, openai=True),
    RouteRule("GET", "/v1/vector_stores/{vector_store_id}/files", _READER, openai=True),
    RouteRule("POST", "/v1/vector_stores/{vector_store_id}/files", _MEMBER, admission=_RATE_LIMITS, openai=True),
    RouteRule("GET", "/v1/vector_stores/{vector_store_id}/files/{file_id}", _READER, openai=True),
    RouteRule("POST DELETE", "/v1/vector_stores/{vector_store_id}/files/{file_id}", _MEMBER, openai=True),
    RouteRule("GET", "/v1/vector_stores/{vector_store_id}/files/{file_id}/content", _READER, openai=True),
    RouteRule("POST", "/v1/vector_stores/{vector_store_id}/file_batches", _MEMBER, openai=True),
    RouteRule("GET", "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}", _READER, openai=True),
    RouteRule("POST", "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel", _MEMBER, openai=True),
    RouteRule("GET", "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files", _READER, openai=True),
    # Administration of a tenant. Keys within its own collections may also be managed by a limited key.
    RouteRule("GET", "/v1/admin/keys", _ADMIN),
    RouteRule("POST", "/v1/admin/keys", _ADMIN, secret=True),
    RouteRule("GET PATCH DELETE", "/v1/admin/keys/{key_id}", _ADMIN),
    RouteRule("POST", "/v1/admin/keys/{key_id}/rotate", _ADMIN, secret=True),
    RouteRule("GET POST", "/v1/admin/users", _ADMIN, _TENANT),
    RouteRule("GET PATCH DELETE", "/v1/admin/users/{user_id}", _ADMIN, _TENANT),
    RouteRule("POST", "/v1/admin/users/{user_id}/sign-in-link", _ADMIN, _TENANT, secret=True),
    RouteRule("GET", "/v1/admin/invitations", _ADMIN, _TENANT),
    RouteRule("POST", "/v1/admin/invitations", _ADMIN, _TENANT, secret=True),
    RouteRule("GET DELETE", "/v1/admin/invitations/{invitation_id}", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/audit", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/feedback", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/overview", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/overview/unanswered", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/overview/unused-documents", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/overview/expensive", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/overview/people", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/costs", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/completions", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/embeddings", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/rerank", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/judge", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/documents", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/events", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/usage/events/{event_id}", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/requests", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/requests/{id}", _ADMIN, _TENANT),
    RouteRule("GET POST", "/v1/admin/budgets", _ADMIN, _TENANT),
    RouteRule("GET PATCH DELETE", "/v1/admin/budgets/{budget_id}", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/budgets/{budget_id}/windows", _ADMIN, _TENANT),
    RouteRule("POST", "/v1/admin/budgets/{budget_id}/reset", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/alerts", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/limits", _ADMIN, _TENANT),
    RouteRule("GET PUT DELETE", "/v1/admin/limits/keys/{key_id}", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/limits/tenants/{tenant_id}", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/prices", _ADMIN, _TENANT),
    RouteRule("GET", "/v1/admin/generations", _ADMIN, _TENANT),
    # Operation of the installation
    RouteRule("PUT DELETE", "/v1/admin/limits/tenants/{tenant_id}", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/prices", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/prices/rerate", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/generations/{generation_id}/confirm", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/generations/{generation_id}/rollback", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/usage/rebuild", _ADMIN, _INSTALLATION),
    RouteRule("GET", "/v1/admin/usage/reconciliation", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/reconcile", _ADMIN, _INSTALLATION),
    RouteRule("GET POST", "/v1/admin/models", _ADMIN, _INSTALLATION),
    RouteRule("GET", "/v1/admin/models/additions", _ADMIN, _INSTALLATION),
    RouteRule("DELETE", "/v1/admin/models/additions/{addition_id}", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/models/test-server", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/signing-keys/rotate", _ADMIN, _INSTALLATION),
    RouteRule("GET POST", "/v1/admin/tenants", _ADMIN, _INSTALLATION),
    RouteRule("GET PATCH", "/v1/admin/tenants/{tenant_id}", _ADMIN, _INSTALLATION),
    RouteRule("POST", "/v1/admin/tenants/{tenant_id}/keys", _ADMIN, _INSTALLATION, secret=True),
)

_PRESENTING = frozenset({"/v1/session", "/v1/invitations/preview", "/v1/invitations/accept"})

# Requests without a row reach no route. Every key may see that a GET finds nothing; the rest is an administrator's.
_UNLISTED: tuple[RouteRule, ...] = (
    RouteRule("*", "/v1/admin/{path:path}", _ADMIN, _TENANT),
    RouteRule("*", "/v1/admin", _ADMIN),
    RouteRule("GET", "/v1/{path:path}", _READER),
)
_DENIED = RouteRule("*", "", _ADMIN)


def rule_for(method: str, path: str) -> RouteRule:
    """The row that covers `method path`: the first one of `ROUTES`, or a row that denies.

    Example:
        >>> rule_for("POST", "/v1/ask").admission
        <AdmissionControl.GENERATION: 'generation'>
        >>> rule_for("POST", "/v1/invented").role
        <Role.ADMIN: 'admin'>
    """
    known = _fixed().get((method, path))
    return _covering(method, path) if known is None else known


def presents_secret(path: str, method: str) -> bool:
    """Whether a request without a key presents a secret in its body, which it may be guessing: a key or a token."""
    return method == "POST" and is_public(path, method) and path in _PRESENTING


def is_public(path: str, method: str = "GET") -> bool:
    """Whether a request is served without a key: health, metrics, the page, the API's documentation, signing in."""
    return rule_for(method, path).reach is RouteReach.PUBLIC


def refusal(principal: Principal, method: str, path: str) -> str | None:
    """The reason for which the principal may not send `method path`, in one sentence; None where it may."""
    rule = rule_for(method, path)
    if not principal.role.includes(rule.role):
        return f"This needs a key with the role '{rule.role}'."
    if rule.reach is RouteReach.INSTALLATION and not principal.is_operator:
        return "This concerns the whole installation: it needs an administrator's key of the first tenant."
    if rule.reach is RouteReach.TENANT and principal.collections is not None:
        return "This concerns the whole tenant: it needs a key that is not limited to collections."
    return None


def speaks_openai(path: str) -> bool:
    """Whether errors at `path` also have OpenAI's `error` object: at its routes and at all addresses below them."""
    return path.startswith(_openai_prefixes())


def speaks_anthropic(path: str) -> bool:
    """Whether errors at `path` also have Anthropic's `error` object, and its clients' `x-api-key` is the key."""
    return path == _MESSAGES or path.startswith(f"{_MESSAGES}/")


def _covering(method: str, path: str) -> RouteRule:
    by_method = _compiled()
    rows = by_method.get(_listed_method(method), by_method["*"])
    return next((rule for start, pattern, rule in rows if path.startswith(start) and pattern.match(path)), _DENIED)


@cache
def _fixed() -> Mapping[tuple[str, str], RouteRule]:
    """The rules of the paths without a parameter: most requests are for one, and ask for its rule a dozen times."""
    paths = {rule.path for rule in ROUTES if "{" not in rule.path}
    return {(method, path): _covering(method, path) for method in _compiled() for path in paths}


@cache
def _compiled() -> Mapping[str, list[tuple[str, re.Pattern[str], RouteRule]]]:
    """By method, its rows in their order, each with its fixed start and its pattern; `*`: methods that no row names."""
    compiled = [(_fixed_start(rule), compile_path(rule.path)[0], rule) for rule in (*ROUTES, *_UNLISTED)]
    methods = {method for rule in (*ROUTES, *_UNLISTED) for method in rule.methods.split()}
    return {
        method: [row for row in compiled if not {method, "*"}.isdisjoint(row[2].methods.split())] for method in methods
    }


@cache
def _openai_prefixes() -> tuple[str, ...]:
    return tuple({_fixed_start(rule).rstrip("/") for rule in ROUTES if rule.openai})


def _fixed_start(rule: RouteRule) -> str:
    return rule.path.partition("{")[0]


def _listed_method(method: str) -> str:
    return "GET" if method in {"HEAD", "OPTIONS"} else method
