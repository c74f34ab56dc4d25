"""Contents of a document: its canonical text, pages, chunks and original file."""

from contextlib import AbstractContextManager
from pathlib import Path as LocalPath
from typing import Annotated

from anyio import CancelScope, to_thread
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import FileResponse, PlainTextResponse, Response
from pydantic import Field
from starlette.types import Receive, Scope, Send

from app.api.dependencies import CorpusDep, Cursor, Limit, PrincipalDep, visible_document
from app.api.schemas.bounds import LARGEST_INTEGER, Id
from app.api.schemas.shape import Page, ResponseBody, problems
from app.documents.ports import ObjectName, Originals
from app.errors import NotFound
from app.server.state import DocumentsState
from app.types import Principal
from ingestion.types import BlockKind
from retrieval.types import Span


class BlockBody(ResponseBody):
    """A block of a document: what a piece of its canonical text is."""

    kind: BlockKind = Field(description="heading, paragraph, list_item, table_row, caption, code or furniture.")
    start: int = Field(description="First character in the canonical text.")
    end: int = Field(description="One past its last character.")
    level: int = Field(description="Of a heading: 1 is outermost; of another block the number of headings above it.")


class ContentBody(ResponseBody):
    """A slice of a document's canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version the text belongs to.")
    start: int = Field(description="First character, inclusive.", examples=[0])
    end: int = Field(description="Last character, exclusive.", examples=[120])
    total: int = Field(description="Number of characters of the whole text.", examples=[20123])
    text: str = Field(description="The text; offsets count Unicode code points.")
    blocks: list[BlockBody] | None = Field(
        description="With `structure=true`: the blocks that overlap the slice, in order; else null."
    )


class PageBody(ResponseBody):
    """The text of a page and its range in the canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version.")
    number: int = Field(description="The page, slide or sheet, from 1.", examples=[4])
    start_char: int = Field(description="First character of the page.")
    end_char: int = Field(description="One past its last character.")
    text: str = Field(description="Its text.")


class ChunkBody(ResponseBody):
    """A chunk of a document."""

    id: str = Field(description="The chunk's id.", examples=["chk_12"])
    ordinal: int = Field(description="Its position in the document, from 0.", examples=[0])
    version: int = Field(description="The version it belongs to.")
    start_char: int = Field(description="First character in the canonical text.")
    end_char: int = Field(description="One past its last character.")
    page_start: int | None = Field(description="First page of the chunk.")
    page_end: int | None = Field(description="Last page of the chunk.")
    heading_path: list[str] = Field(description="The headings of the sections around it, outermost first.")
    token_count: int = Field(description="Embedder tokens, heading path included.")
    text: str = Field(description="Exactly `content[start_char:end_char]`.")


_ORIGINAL_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}

router = APIRouter(tags=["documents"])

Version = Annotated[
    int | None, Query(ge=1, le=LARGEST_INTEGER, description="A document version; default: the live one.")
]


@router.get(
    "/v1/documents/{document_id}/content",
    summary="Read the canonical text",
    response_model=None,
    responses={
        200: {
            "description": "The characters `[start, end)`; offsets count Unicode code points.",
            "content": {
                "text/plain": {"schema": {"type": "string"}},
                "application/json": {"schema": {"$ref": "#/components/schemas/ContentBody"}},
            },
        },
        **problems(404, 422),
    },
)
def read_content(
    document_id: Id,
    request: Request,
    corpus: CorpusDep,
    principal: PrincipalDep,
    start: Annotated[int, Query(ge=0, le=LARGEST_INTEGER, description="First character, inclusive.")] = 0,
    end: Annotated[
        int | None, Query(ge=0, le=LARGEST_INTEGER, description="Last character, exclusive; default: the end.")
    ] = None,
    version: Version = None,
    structure: Annotated[bool, Query(description="In JSON: also the blocks of the text, such as headings.")] = False,
) -> Response:
    """The text that all offsets refer to, as `text/plain`, or JSON with `Accept: application/json`."""
    live, text = text_of(corpus, principal, document_id, version)
    stop = len(text) if end is None else min(end, len(text))
    piece = text[start:stop]
    if "application/json" in request.headers.get("accept", ""):
        first = min(start, len(text))
        body = ContentBody(
            document_id=document_id,
            version=live,
            start=first,
            end=stop,
            total=len(text),
            text=piece,
            blocks=_blocks(corpus, principal, document_id, live, Span(first, stop)) if structure else None,
        )
        return Response(body.model_dump_json(), media_type="application/json")
    return PlainTextResponse(piece)


@router.get("/v1/documents/{document_id}/pages/{number}", summary="Read a page", responses=problems(404))
def read_page(
    document_id: Id,
    number: Annotated[int, Path(ge=1, le=LARGEST_INTEGER, description="The page, slide or sheet, from 1.")],
    corpus: CorpusDep,
    principal: PrincipalDep,
    version: Version = None,
) -> PageBody:
    """The text of a page and its range in the canonical text."""
    live, text = text_of(corpus, principal, document_id, version)
    pages, _ = corpus.contents.structure(document_id, tenant_id=principal.tenant_id, version=live)
    for page in pages:
        if page.number == number:
            return PageBody(
                document_id=document_id,
                version=live,
                number=number,
                start_char=page.start_char,
                end_char=page.end_char,
                text=text[page.start_char : page.end_char],
            )
    raise NotFound("The document has no such page.")


@router.get("/v1/documents/{document_id}/chunks", summary="List chunks", responses=problems(404))
def list_chunks(
    document_id: Id, corpus: CorpusDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[ChunkBody]:
    """The chunks of the live version, in document order."""
    visible_document(corpus, principal, document_id)
    chunks, next_cursor = corpus.contents.chunks(document_id, tenant_id=principal.tenant_id, limit=limit, cursor=cursor)
    data = [
        ChunkBody(
            id=chunk.id,
            ordinal=chunk.ordinal,
            version=chunk.version,
            start_char=chunk.start_char,
            end_char=chunk.end_char,
            page_start=chunk.page_start,
            page_end=chunk.page_end,
            heading_path=list(chunk.heading_path),
            token_count=chunk.token_count,
            text=chunk.text,
        )
        for chunk in chunks
    ]
    return Page(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get(
    "/v1/documents/{document_id}/file",
    summary="Download the original file",
    response_class=FileResponse,
    responses={200: {"description": "The bytes as uploaded."}, **problems(404)},
)
def read_file(document_id: Id, corpus: CorpusDep, principal: PrincipalDep, version: Version = None) -> FileResponse:
    """The original file, as an attachment."""
    document = visible_document(corpus, principal, document_id)
    response = original_response(
        corpus.files.store,
        corpus.files.original_of(document_id, version or document.live_version or document.version),
        filename=document.filename,
        media_type=document.media_type or "application/octet-stream",
    )
    if response is None:
        raise NotFound("There is no such version.")
    return response


class OriginalResponse(FileResponse):
    """An original, whole or the ranges that the client asks for. Its local copy is held until it is sent."""

    def __init__(
        self, path: LocalPath, held: AbstractContextManager[LocalPath], *, filename: str, media_type: str | None
    ) -> None:
        """`held` is the entered context of `Originals.local_copy` that gave `path`."""
        super().__init__(path, filename=filename, media_type=media_type, headers=_ORIGINAL_HEADERS)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with CancelScope(shield=True):  # also when the client has left
                await to_thread.run_sync(self._held.__exit__, None, None, None)


def original_response(
    originals: Originals, name: ObjectName | None, *, filename: str, media_type: str | None
) -> OriginalResponse | None:
    """The response with an original; None when it does not exist.

    Raises:
        StorageFull, StoreUnavailable: It cannot be read.
    """
    if name is None:
        return None
    held = originals.local_copy(name)
    try:
        path = held.__enter__()
    except FileNotFoundError:
        return None
    return OriginalResponse(path, held, filename=filename, media_type=media_type)


def _blocks(
    corpus: DocumentsState, principal: Principal, document_id: str, version: int, part: Span
) -> list[BlockBody]:
    _, blocks = corpus.contents.structure(document_id, tenant_id=principal.tenant_id, version=version)
    return [
        BlockBody(
            kind=block.kind,
            start=block.start_char,
            end=block.end_char,
            level=len(block.heading_path) + (block.kind is BlockKind.HEADING),
        )
        for block in blocks
        if block.start_char < part.end_char and part.start_char < block.end_char
    ]


def text_of(corpus: DocumentsState, principal: Principal, document_id: str, version: int | None) -> tuple[int, str]:
    """The version, which is the live one for None, and its canonical text.

    Raises:
        NotFound: The document or the version does not exist for this caller.
    """
    document = visible_document(corpus, principal, document_id)
    wanted = version if version is not None else document.live_version
    if wanted is None:
        raise NotFound("The document has no indexed version yet.")
    return wanted, corpus.contents.text(document_id, tenant_id=principal.tenant_id, version=wanted)
