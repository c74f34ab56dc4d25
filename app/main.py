"""The ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

import anyio
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi_offline import FastAPIOffline

from app.access.policy import is_public
from app.api import (
    admin,
    answers,
    audit,
    budgets,
    chat_completions,
    collections,
    contents,
    conversations,
    documents,
    health,
    jobs,
    prices,
    reconciliation,
    search,
    tokens,
    usage,
    usage_events,
    usage_reconciliation,
)
from app.api.errors import install_error_handlers
from app.api.idempotency import PARAMETER, Idempotency
from app.api.middleware import RequestGate
from app.api.schemas.shape import PROBLEMS
from app.api.security_headers import SecurityHeaders
from app.state import State

_DESCRIPTION = """\
Answers questions from your own documents. Every claim carries a footnote that opens the exact
passage; every token is on the bill.

Send `Authorization: Bearer fn_…`. Errors are `application/problem+json` (RFC 9457). Character
offsets count Unicode code points of a document version's canonical text, start inclusive, end
exclusive. Every response carries `X-Request-Id`, which is also the ledger's key.
"""


def create_app(build: Callable[[], AbstractContextManager[State]], *, version: str) -> FastAPI:
    """The application over whatever `build` composes; nothing is built before the server starts.

    Args:
        build: Makes the state and tears it down; see `app.bootstrap.build`.
        version: Shown in the OpenAPI document.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        context = build()
        app.state.footnote = await anyio.to_thread.run_sync(context.__enter__)
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(context.__exit__, None, None, None)

    app = FastAPIOffline(  # serves /docs from files in its wheel, not from a CDN
        title="Footnote",
        version=version,
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        redoc_url=None,
        static_url="/docs/static",
    )
    for module in (
        documents,
        jobs,
        contents,
        collections,
        search,
        answers,
        conversations,
        chat_completions,
        tokens,
        usage,
        usage_events,
        prices,
        admin,
        audit,
        budgets,
        reconciliation,
        usage_reconciliation,
        health,
    ):
        app.include_router(module.router)
    install_error_handlers(app)
    app.add_middleware(Idempotency)
    app.add_middleware(RequestGate)
    app.add_middleware(SecurityHeaders)  # added last, it comes first
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The contract's machine form (OpenAPI 3.1), saying which routes need a key."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            license_info=app.license_info,
        )
        schema.setdefault("components", {})["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "description": "An API key, `fn_…`."}
        }
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                if method == "post":
                    operation.setdefault("parameters", []).append(PARAMETER)
                operation["security"] = [] if is_public(path) else [{"key": []}]
                if "422" in operation["responses"]:  # FastAPI describes its own shape, ours is a problem document
                    operation["responses"]["422"] = PROBLEMS[422]
        for own in ("HTTPValidationError", "ValidationError"):
            schema["components"].get("schemas", {}).pop(own, None)
        app.openapi_schema = schema
    return app.openapi_schema
