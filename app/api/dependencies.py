"""Dependencies of the routes: the parts of the application's state, the caller, and the scope the caller may search."""

from collections.abc import Sequence
from typing import Annotated, cast

from fastapi import Depends, Query, Request

from app.access.authenticator import Caller
from app.api.schemas.bounds import Id
from app.db.session import Database
from app.errors import Conflict, ModelsLoading, SetupError
from app.server.serving import EmbedderSwapControl, Models, Serving
from app.server.state import AccessState, AdmissionState, DocumentsState, History, State, Telemetry, UsageState
from app.settings import Settings
from app.types import Collection, Document, Principal
from retrieval.types import Scope


def state_of(request: Request) -> State:
    """The application's state, built by the lifespan."""
    return cast(State, request.app.state.footnote)


# Coroutine functions run on the event loop; FastAPI would run each plain function in a thread.


async def corpus_of(request: Request) -> DocumentsState:
    """Documents, collections, files and jobs."""
    return state_of(request).corpus


async def history_of(request: Request) -> History:
    """Conversations and feedback."""
    return state_of(request).history


async def access_of(request: Request) -> AccessState:
    """Keys, sessions, users, tenants and the audit log."""
    return state_of(request).access


async def usage_of(request: Request) -> UsageState:
    """The ledger with prices, budgets and reports."""
    return state_of(request).usage


async def limits_of(request: Request) -> AdmissionState:
    """Admission and quotas."""
    return state_of(request).limits


async def telemetry_of(request: Request) -> Telemetry:
    """Metrics and traces."""
    return state_of(request).telemetry


async def serving_of(request: Request) -> Serving:
    """The models in use, which may change between two requests."""
    return state_of(request).serving


async def settings_of(request: Request) -> Settings:
    """The settings."""
    return state_of(request).settings


async def database_of(request: Request) -> Database:
    """The database, for transactions over several parts."""
    return state_of(request).database


async def principal_of(request: Request) -> Principal:
    """The caller, authenticated by the gate."""
    return cast(Principal, request.scope["state"]["principal"])


async def caller_of(request: Request) -> Caller:
    """The caller with the key or session it came with, authenticated by the gate."""
    return cast(Caller, request.scope["state"]["caller"])


async def models_of(request: Request) -> Models:
    """The models, and the parts of the server that need them.

    Raises:
        ModelsLoading: They are still loading.
        SetupError: This process runs without models.
    """
    serving = state_of(request).serving
    models = serving.models
    if models is None:
        raise without_models(serving)
    return models


def without_models(serving: Serving) -> SetupError:
    """The error for missing models: they are still loading, or this process runs without them."""
    return ModelsLoading() if serving.loading is not None else SetupError("This process runs without models.")


async def embedder_swap_of(request: Request) -> EmbedderSwapControl:
    """The control of embedder swaps.

    Raises:
        ModelsLoading: The models are still loading.
        Conflict: This process is beside others, which would go on with the embedder that they have.
        SetupError: This process runs without models.
    """
    serving = state_of(request).serving
    embedder_swap = serving.embedder_swap
    if state_of(request).settings.shared:
        raise Conflict(
            "Processes that share a database do not change its embedder; stop them and start one without "
            "FOOTNOTE_SHARED."
        )
    if serving.models is None or embedder_swap is None:
        raise without_models(serving)
    return embedder_swap


async def request_id(request: Request) -> str:
    """The request's id."""
    return cast(str, request.scope["state"]["request_id"])


async def answer_deadline(request: Request) -> float:
    """The `time.monotonic` second by which an answer to this request must be finished; set by the request gate."""
    return cast(float, request.scope["state"]["deadline"])


CorpusDep = Annotated[DocumentsState, Depends(corpus_of)]
HistoryDep = Annotated[History, Depends(history_of)]
AccessDep = Annotated[AccessState, Depends(access_of)]
UsageDep = Annotated[UsageState, Depends(usage_of)]
LimitsDep = Annotated[AdmissionState, Depends(limits_of)]
TelemetryDep = Annotated[Telemetry, Depends(telemetry_of)]
ServingDep = Annotated[Serving, Depends(serving_of)]
SettingsDep = Annotated[Settings, Depends(settings_of)]
DatabaseDep = Annotated[Database, Depends(database_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
PrincipalDep = Annotated[Principal, Depends(principal_of)]
ModelsDep = Annotated[Models, Depends(models_of)]
EmbedderSwapDep = Annotated[EmbedderSwapControl, Depends(embedder_swap_of)]
RequestId = Annotated[str, Depends(request_id)]
AnswerDeadline = Annotated[float, Depends(answer_deadline)]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of items on a page.")]
Cursor = Annotated[str | None, Query(max_length=4096, description="`next_cursor` of the previous page.")]


def visible_collection(corpus: DocumentsState, principal: Principal, collection_id: str) -> Collection:
    """The collection, when the caller's tenant has it and the caller's key is not limited to others.

    Raises:
        NotFound: It does not exist for this caller.
    """
    return corpus.collections.get(collection_id, tenant_id=principal.tenant_id, allowed=principal.collections)


def collection_named(corpus: DocumentsState, principal: Principal, name: str) -> str | None:
    """The id of the caller's collection with this id or name; None where there is none."""
    found = corpus.collections.list(principal.tenant_id, allowed=principal.collections)
    return next((each.id for each in found if name in {each.id, each.name}), None)


def scope_for(
    corpus: DocumentsState,
    principal: Principal,
    *,
    collection_ids: Sequence[str] | None,
    document_ids: Sequence[str] | None,
    raw_filter: object,
) -> Scope:
    """The scope of a search: what the caller may see, narrowed by the request's own limits.

    Raises:
        NotFound: A named collection does not exist for this caller.
        InvalidFilter: The filter is malformed.
    """
    return corpus.collections.scope(
        principal, collection_ids=collection_ids, document_ids=document_ids, raw_filter=raw_filter
    )


def visible_document(corpus: DocumentsState, principal: Principal, document_id: str) -> Document:
    """The document, when it exists for this caller.

    Raises:
        NotFound: It does not exist for this caller.
    """
    return corpus.documents.get(document_id, tenant_id=principal.tenant_id, collections=principal.collections)


def document_in_path(document_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> Document:
    """The document in a route's path; a dependency, so that a missing one is a 404 before a stream begins."""
    return visible_document(corpus, principal, document_id)
