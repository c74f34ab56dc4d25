"""The OpenAPI 3.1 document: FastAPI's description of the routes, and what all routes have in common."""

import json
from threading import Lock
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from app.access.cookie import COOKIE, CSRF_HEADER, SAFE_METHODS
from app.access.routes import is_public
from app.api.contents import ContentBody
from app.api.gate.idempotency import PARAMETER
from app.api.schemas.answers import DoneBody
from app.api.schemas.quotes_event import QuotesEventBody
from app.api.schemas.shape import PROBLEMS, SCHEMA_REFERENCE, Problem
from app.api.schemas.sources_event import SourcesEventBody

_REQUEST_ID = {
    "description": "The request's id, by which the usage ledger names it.",
    "required": True,
    "schema": {"type": "string", "pattern": "^req_[0-9a-z]+$"},
}
_RETRY_AFTER = {
    "description": "Seconds to wait before the request is tried again.",
    "schema": {"type": "integer", "minimum": 1},
}
_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key, `fn_…`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "The session of a signed-in user (`POST /v1/session`). A request with a key needs none.",
    },
    "csrf": {
        "type": "apiKey",
        "in": "header",
        "name": CSRF_HEADER,
        "description": "The session's CSRF token, from `GET /v1/session`; needed with the session cookie only.",
    },
}

_BODIES = (SourcesEventBody, QuotesEventBody, DoneBody, ContentBody)
"""The bodies of server-sent events and of responses in several forms, which FastAPI does not find."""

_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})


def serve_document(app: FastAPI) -> None:
    """Serve `/openapi.json` from bytes that are made once, in a thread.

    FastAPI's own route makes the document on the event loop, which takes half a second, and encodes it again for each
    request.
    """
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != app.openapi_url]
    making, made = Lock(), dict[str, bytes]()

    def document(request: Request) -> Response:
        root = str(request.scope.get("root_path", ""))
        with making:
            if root not in made:
                servers = {"servers": [{"url": root}]} if root else {}
                made[root] = json.dumps(describe(app) | servers, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(made[root], media_type="application/json")

    assert app.openapi_url is not None
    app.add_api_route(app.openapi_url, document, include_in_schema=False)


def describe(app: FastAPI) -> dict[str, Any]:
    """The document at `/openapi.json`, built once and cached.

    Every operation lists the credentials it needs, its failures (problem documents, RFC 9457) and the headers of its
    responses.
    """
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            license_info=app.license_info,
            servers=app.servers,
        )
        components = document.setdefault("components", {})
        components.setdefault("securitySchemes", {}).update(_SCHEMES)
        schemas = components.setdefault("schemas", {})
        for fastapis in ("HTTPValidationError", "ValidationError"):
            schemas.pop(fastapis, None)  # FastAPI's body of a 422; ours is a problem document
        schemas["Problem"] = Problem.model_json_schema()
        for body in _BODIES:
            described = body.model_json_schema(ref_template=SCHEMA_REFERENCE)
            schemas.update({**described.pop("$defs", {}), body.__name__: described})
        _make_exact(document)
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _complete(operation, method.upper(), path)
        app.openapi_schema = document
    return app.openapi_schema


def _make_exact(node: Any) -> None:
    """Write whole-number bounds as integers, in place.

    FastAPI makes them floats. The float 2⁶³ is written as 9.223372036854776e18, which is another number when a client
    reads it as a decimal.
    """
    if isinstance(node, list):
        for item in node:
            _make_exact(item)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in _BOUNDS and isinstance(value, float) and value.is_integer():
                node[name] = int(value)
            else:
                _make_exact(value)


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    for parameter in operation.get("parameters", []):
        parameter["schema"] = _sendable(parameter["schema"])
    public = is_public(path, method)
    if method == "POST" and not public:
        operation.setdefault("parameters", []).append(PARAMETER)
    session: dict[str, list[str]] = {"session": []} if method in SAFE_METHODS else {"session": [], "csrf": []}
    operation["security"] = [] if public else [{"key": []}, session]
    responses = operation["responses"]
    if "422" in responses:
        responses["422"] = PROBLEMS[422]
    for status in _failures(operation, method, public=public):
        responses.setdefault(str(status), PROBLEMS[status])
    for status, response in responses.items():
        headers = {"X-Request-Id": _REQUEST_ID, **response.get("headers", {})}
        if status in {"429", "503"} and path != "/readyz":
            headers.setdefault("Retry-After", _RETRY_AFTER)
        responses[status] = {**response, "headers": headers}
    operation["responses"] = dict(sorted(responses.items()))


def _sendable(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema without null: a query or header cannot hold null, the parameter is left out instead."""
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) != 1 or len(choices) == len(schema["anyOf"]):
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **choices[0]}


def _failures(operation: dict[str, Any], method: str, *, public: bool) -> list[int]:
    """Statuses of failures before the route runs: authentication, limits, the body, the idempotency key."""
    statuses = [429] if public else [401, 403, 429, 503]
    if "requestBody" in operation:
        statuses += [400, 408, 413, 422]
    if method == "POST" and not public:
        statuses += [400, 409, 422]
    return statuses
