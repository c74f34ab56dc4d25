"""Builds the ASGI application: routers, middleware, error handlers and the OpenAPI document."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager

import anyio
from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from app.api import (
    admin,
    answers,
    audit,
    boxes,
    budgets,
    collections,
    compare,
    contents,
    conversations,
    document_events,
    document_overviews,
    documents,
    feedback,
    find,
    health,
    invitations,
    jobs,
    keys,
    ledger_reconciliation,
    limits,
    model_additions,
    model_choice,
    overview,
    prices,
    protected_resource,
    receipts,
    reconciliation,
    requests,
    search,
    sessions,
    tables,
    tenants,
    tokens,
    usage,
    usage_events,
    users,
    watches,
    web_page,
)
from app.api.anthropic import messages
from app.api.errors import install_error_handlers
from app.api.gate.drain_gate import DrainGate
from app.api.gate.idempotency import Idempotency
from app.api.gate.request_gate import RequestGate
from app.api.gate.security_headers import SecurityHeaders
from app.api.mcp import endpoint as mcp_endpoint
from app.api.openai import (
    chat_completions,
    embeddings,
    files,
    models,
    responses,
    stored_responses,
    vector_store_files,
    vector_stores,
)
from app.api.openapi import describe, serve_document
from app.api.root_path import RootPath
from app.server.drain import Drain
from app.server.process import lag_measured
from app.server.state import State

# A router that comes later is matched later: those that answer questions come first.
_MODULES = (
    answers,
    chat_completions,
    messages,
    responses,
    search,
    documents,
    document_events,
    jobs,
    compare,
    contents,
    boxes,
    find,
    document_overviews,
    collections,
    conversations,
    watches,
    tables,
    receipts,
    feedback,
    stored_responses,
    mcp_endpoint,
    protected_resource,
    model_choice,
    models,
    embeddings,
    files,
    vector_stores,
    vector_store_files,
    tokens,
    usage,
    usage_events,
    requests,
    overview,
    prices,
    sessions,
    keys,
    users,
    invitations,
    tenants,
    admin,
    model_additions,
    audit,
    budgets,
    limits,
    reconciliation,
    ledger_reconciliation,
    health,
    web_page,
)

_DESCRIPTION = """\
Answers questions from your own documents. Every claim carries a footnote that opens the exact
passage; every token is counted and billed.

Send `Authorization: Bearer fn_…`. Errors are `application/problem+json` (RFC 9457). Character
offsets count Unicode code points of a document version's canonical text, start inclusive, end
exclusive. Every response carries `X-Request-Id`, by which the usage ledger names the request.
"""


def create_app(
    build: Callable[[], AbstractContextManager[State]],
    *,
    version: str,
    root_path: str = "",
    drain: Drain | None = None,
    operations_only: bool = False,
) -> FastAPI:
    """The application; `build` runs when the server starts, not before.

    Args:
        build: Context manager that builds the state and closes it; see `app.server.bootstrap.build`.
        version: Shown in the OpenAPI document.
        root_path: The path prefix below which a reverse proxy shows the application.
        drain: Graceful shutdown; without one requests are never refused or ended.
        operations_only: Serve /healthz, /readyz and /metrics alone: of a process that only ingests.
    """
    drain = drain or Drain(seconds=0)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        context = build()
        await anyio.to_thread.run_sync(_prepare_routes, app)
        app.state.footnote = await anyio.to_thread.run_sync(context.__enter__)
        try:
            async with lag_measured(app.state.footnote.telemetry.metrics.loop_lag.observe):
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
        redirect_slashes=False,  # Starlette redirects to the host that the request names
        static_url="/docs/static",
    )
    for module in (health,) if operations_only else _MODULES:
        app.include_router(module.router)
    if not operations_only:
        web_page.serve_assets(app)
    app.state.drain = drain
    install_error_handlers(app)
    app.add_middleware(Idempotency)
    app.add_middleware(RequestGate)
    app.add_middleware(DrainGate, drain=drain)
    app.add_middleware(SecurityHeaders)
    # Added last, so that it is the outermost. FastAPI's and uvicorn's own root paths stay empty: each changes paths.
    app.add_middleware(RootPath, prefix=root_path)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    serve_document(app)
    return app


def _prepare_routes(app: FastAPI) -> None:
    """Makes the application ready to match addresses.

    FastAPI builds the fields of included routers when they are first matched, for 0.1 s or more: the first request
    would hold the event loop for as long.
    """
    no_address = {"type": "http", "method": "GET", "path": "", "root_path": "", "headers": []}
    for route in app.routes:
        route.matches(no_address)
