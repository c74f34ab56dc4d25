"""What routes are handed: the application's state, the caller, and the scope the caller may search."""

from collections.abc import Sequence
from typing import Annotated, cast

from fastapi import Depends, Query, Request

from app.access.authenticator import Caller
from app.errors import ModelsLoading, SetupError
from app.server.state import EmbedderSwapControl, Models, State
from app.types import Collection, Document, Principal
from retrieval.filters import parse_filter
from retrieval.types import Scope


def state_of(request: Request) -> State:
    """The application's state, built by the lifespan."""
    return cast(State, request.app.state.footnote)


def principal_of(request: Request) -> Principal:
    """The caller, authenticated by the gate."""
    return cast(Principal, request.scope["state"]["principal"])


def caller_of(request: Request) -> Caller:
    """The caller with the key or session it came with, authenticated by the gate."""
    return cast(Caller, request.scope["state"]["caller"])


def models_of(request: Request) -> Models:
    """The stations that need model weights.

    Raises:
        ModelsLoading: They are not there yet.
        SetupError: This process runs without them.
    """
    state = state_of(request)
    models = state.models
    if models is None:
        raise without_models(state)
    return models


def without_models(state: State) -> SetupError:
    """Why there are no models: they will be, or this process has none."""
    return ModelsLoading() if state.loading is not None else SetupError("This process runs without models.")


def embedder_swap_of(request: Request) -> EmbedderSwapControl:
    """What changes embedders.

    Raises:
        ModelsLoading: They are not there yet.
        SetupError: This process runs without them.
    """
    state = state_of(request)
    embedder_swap = state.embedder_swap
    if state.models is None or embedder_swap is None:
        raise without_models(state)
    return embedder_swap


def request_id(request: Request) -> str:
    """The request's id."""
    return cast(str, request.scope["state"]["request_id"])


def answer_deadline(request: Request) -> float:
    """The `time.monotonic` second by which an answer to this request must be finished; the gate knows it."""
    return cast(float, request.scope["state"]["deadline"])


StateDep = Annotated[State, Depends(state_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
PrincipalDep = Annotated[Principal, Depends(principal_of)]
ModelsDep = Annotated[Models, Depends(models_of)]
EmbedderSwapDep = Annotated[EmbedderSwapControl, Depends(embedder_swap_of)]
RequestId = Annotated[str, Depends(request_id)]
AnswerDeadline = Annotated[float, Depends(answer_deadline)]
Limit = Annotated[int, Query(ge=1, le=500, description="Most items on a page.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]


def visible_collection(state: State, principal: Principal, collection_id: str) -> Collection:
    """The collection, if the caller's tenant has it and the caller's key reaches it.

    Raises:
        NotFound: It does not exist for this caller.
    """
    return state.collections.get(collection_id, tenant_id=principal.tenant_id, allowed=principal.collections)


def scope_for(
    state: State,
    principal: Principal,
    *,
    collection_ids: Sequence[str] | None,
    document_ids: Sequence[str] | None,
    raw_filter: object,
) -> Scope:
    """What the caller may see, narrowed by what was asked.

    Raises:
        NotFound: A named collection does not exist for this caller.
        InvalidFilter: The filter is malformed.
    """
    for collection_id in collection_ids or ():
        visible_collection(state, principal, collection_id)
    allowed = collection_ids if collection_ids is not None else principal.collections
    return Scope(
        tenant_id=principal.tenant_id,
        collection_ids=tuple(allowed) if allowed is not None else None,
        document_ids=tuple(document_ids) if document_ids is not None else None,
        filter=parse_filter(raw_filter) if raw_filter is not None else None,
    )


def visible_document(state: State, principal: Principal, document_id: str) -> Document:
    """The document, if it exists for this caller.

    Raises:
        NotFound: It does not.
    """
    return state.documents.get(document_id, tenant_id=principal.tenant_id, collections=principal.collections)


def document_in_path(document_id: str, state: StateDep, principal: PrincipalDep) -> Document:
    """The document a route's path names; a dependency, so that a stream is refused before it begins."""
    return visible_document(state, principal, document_id)
