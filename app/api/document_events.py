"""The stream of a document's ingestion events, and the wait for its ingestion."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.access.authenticator import Authenticator, Caller
from app.api.dependencies import AccessDep, CallerDep, CorpusDep, LimitsDep, PrincipalDep, document_in_path
from app.api.event_stream import EventStream, event_stream, sse
from app.api.schemas.documents import DocumentBody
from app.api.schemas.shape import problems
from app.documents.watch import Followed
from app.errors import NotFound, Unauthenticated
from app.server.state import DocumentsState
from app.types import Document, DocumentStatus

router = APIRouter(tags=["documents"])

_FINAL = {DocumentStatus.INDEXED, DocumentStatus.FAILED, DocumentStatus.DELETING}
_RECHECK_SECONDS = 0.5  # between two checks of the caller's key


async def stream_place(limits: LimitsDep, principal: PrincipalDep) -> AsyncIterator[None]:
    """A place among the open event streams, until the response has ended.

    Raises:
        RateLimited: The caller or its tenant has too many open streams.
    """
    with limits.event_streams.place(principal):
        yield


async def followed_in_path(
    document: Annotated[Document, Depends(document_in_path)], corpus: CorpusDep
) -> AsyncIterator[Followed]:
    """The document in the route's path, followed until the response has ended."""
    with corpus.watch.following(document) as followed:
        yield followed


@router.get(
    "/v1/documents/{document_id}/events",
    response_class=Response,
    summary="Stream ingestion progress",
    responses={
        200: {
            "description": "Events: `progress` with the document …, then `done` {status} or `error` {detail}.",
            "content": event_stream("progress", "done", "error", bodies={"progress": DocumentBody}),
        },
        **problems(404, 429),
    },
    dependencies=[Depends(stream_place)],
)
async def document_events(
    followed: Annotated[Followed, Depends(followed_in_path)], access: AccessDep, caller: CallerDep
) -> EventStream:
    """Server-sent events: `progress` with the document when it changes, then `done`; `error` when the key ends."""
    return EventStream(_events(followed, access.authenticator, caller))


async def _events(followed: Followed, authenticator: Authenticator, caller: Caller) -> AsyncGenerator[bytes, None]:
    shown, last = None, None
    while (document := followed.document) is not None:
        if document is not shown:
            shown, body = document, DocumentBody.of(document).model_dump_json()
            if body != last:
                yield sse("progress", body)
                last = body
        if document.status in _FINAL:
            yield _done(document.status)
            return
        await followed.changed(seconds=_RECHECK_SECONDS)
        try:
            await authenticator.recheck(caller)
        except Unauthenticated as error:
            yield sse("error", json.dumps({"detail": str(error)}))
            return
    yield _done(DocumentStatus.DELETING)


def _done(status: DocumentStatus) -> bytes:
    return sse("done", json.dumps({"status": status}))


async def wait_for_ingestion(corpus: DocumentsState, document: Document, *, seconds: float) -> Document:
    """The document once it is ingested, or as it is after `seconds`.

    Raises:
        NotFound: It was deleted meanwhile.
    """
    deadline = time.monotonic() + seconds
    with corpus.watch.following(document) as followed:
        while (present := followed.document) is not None:
            left = deadline - time.monotonic()
            if present.status in _FINAL or left <= 0:
                return present
            await followed.changed(seconds=left)
    raise NotFound("There is no such document.")
