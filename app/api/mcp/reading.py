"""Tools that only read: search, passages, documents, collections, and the caller's own usage."""

from typing import Any

import anyio
from pydantic import BaseModel, Field

from app.api.contents import text_of
from app.api.dependencies import collection_named, models_of, principal_of, request_id, state_of
from app.api.documents import list_documents
from app.api.mcp.calls import Tool, ToolCall, ToolResult
from app.api.mcp.passages import Collections, Excerpt, ListedCollection, SearchPassages, listed, quote
from app.api.schemas.bounds import LARGEST_INTEGER, MOST_QUESTION, Described, Id
from app.api.schemas.documents import DocumentBody
from app.api.schemas.search import FILTER, SearchRequest
from app.api.schemas.shape import Metadata, RequestBody
from app.api.schemas.usage import OwnUsage
from app.api.search import found_by
from app.api.usage import own_usage
from app.errors import NotFound
from app.server.state import DocumentsState
from app.types import DocumentStatus, Principal

_MOST_CHARACTERS = 20_000  # of one passage: an assistant's context is small
_MOST_LISTED = 100

ONLY_IN = "Only in this collection: its name or id; see list_collections. Default: all."


class SearchArguments(RequestBody):
    """Arguments of `search`."""

    query: str = Field(
        min_length=1, max_length=MOST_QUESTION, description="Words or a question, in the language of the documents."
    )
    collection: Id | None = Field(default=None, description=ONLY_IN)
    top_k: int = Field(default=8, ge=1, le=50, description="Most passages to return.")
    filter: Described | None = Field(default=None, description=FILTER)


class PassageArguments(RequestBody):
    """Arguments of `read_passage`."""

    document_id: Id = Field(description="From a search or a citation.")
    start: int = Field(default=0, ge=0, le=LARGEST_INTEGER, description="First character.")
    end: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_INTEGER,
        description=f"One past the last character; at most {_MOST_CHARACTERS:,} characters are read.",
    )
    version: int | None = Field(
        default=None, ge=1, le=LARGEST_INTEGER, description="The version a citation names; default: the one in use."
    )


class ListArguments(RequestBody):
    """Arguments of `list_documents`."""

    collection: Id | None = Field(default=None, description=ONLY_IN)
    name: str | None = Field(default=None, max_length=500, description="Only documents whose name contains this.")
    limit: int = Field(default=20, ge=1, le=_MOST_LISTED, description="Most documents to return.")
    cursor: str | None = Field(default=None, max_length=4096, description="`next_cursor` of the previous page.")


class NoArguments(RequestBody):
    """No arguments."""


class DocumentEntry(BaseModel):
    """A document in a list."""

    document_id: str = Field(description="Its id.")
    filename: str = Field(description="Its name.")
    status: DocumentStatus = Field(description="`indexed` can be searched; `failed` cannot be read.")
    version: int = Field(description="Its newest version.")
    collection_id: str = Field(description="Its collection.")
    pages: int = Field(description="Its pages; 0 where the format has none.")
    metadata: Metadata = Field(description="Its own fields, usable in filters.")
    error: str | None = Field(description="Why it failed, where it did.")

    @classmethod
    def of(cls, body: DocumentBody) -> "DocumentEntry":
        """The document of an API's body."""
        return cls(
            document_id=body.id,
            filename=body.filename,
            status=body.status,
            version=body.version,
            collection_id=body.collection_id,
            pages=body.counts.pages,
            metadata=body.metadata,
            error=None if body.error is None else body.error.detail,
        )

    @property
    def line(self) -> str:
        """The document in one line of text."""
        name, pages = " ".join(self.filename.split()), f", {self.pages} pages" if self.pages else ""
        doubt = f" ({self.status})" if self.status is not DocumentStatus.INDEXED else ""
        return f"{name}{doubt}: document {self.document_id} version {self.version}{pages}"


class DocumentEntries(BaseModel):
    """A page of documents."""

    documents: list[DocumentEntry] = Field(description="Newest first.")
    next_cursor: str | None = Field(description="Gets the next page; null on the last.")


def scope_fields(
    corpus: DocumentsState, principal: Principal, *, collection: str | None, conditions: Described | None
) -> dict[str, Any]:
    """The fields of a search or question that say which documents are meant; a collection has a name or an id.

    Raises:
        NotFound: There is no such collection for this caller.
    """
    fields: dict[str, Any] = {"filter": conditions}
    if collection is not None:
        fields["collection_ids"] = [collection_id(corpus, principal, collection)]
    return fields


def collection_id(corpus: DocumentsState, principal: Principal, name: str) -> str:
    """The id of the caller's collection with this id or name.

    Raises:
        NotFound: There is none.
    """
    found = collection_named(corpus, principal, name)
    if found is None:
        raise NotFound(f"There is no collection '{name}'. list_collections names those there are.")
    return found


async def _search(call: ToolCall, given: SearchArguments) -> ToolResult:
    corpus, principal = state_of(call.request).corpus, await principal_of(call.request)
    models, named = await models_of(call.request), await request_id(call.request)

    def find() -> list[dict[str, Any]]:
        scope = scope_fields(corpus, principal, collection=given.collection, conditions=given.filter)
        body = SearchRequest.model_validate({"query": given.query, "top_k": given.top_k, **scope})
        found = found_by(body, corpus, models, principal, named, endpoint="mcp.search")
        return [hit.model_dump() for hit in found.data]

    hits = await anyio.to_thread.run_sync(find)
    quotes = [quote(hit, number=number, base=call.address) for number, hit in enumerate(hits, start=1)]
    return ToolResult(listed(quotes) or "Nothing was found.", SearchPassages(passages=quotes))


async def _read_passage(call: ToolCall, given: PassageArguments) -> ToolResult:
    corpus, principal = state_of(call.request).corpus, await principal_of(call.request)
    version, text = await anyio.to_thread.run_sync(text_of, corpus, principal, given.document_id, given.version)
    start = min(given.start, len(text))
    end = max(start, min(given.end if given.end is not None else len(text), len(text), start + _MOST_CHARACTERS))
    excerpt = Excerpt(
        document_id=given.document_id, version=version, start=start, end=end, total=len(text), text=text[start:end]
    )
    return ToolResult(excerpt.text, excerpt)


async def _list_documents(call: ToolCall, given: ListArguments) -> ToolResult:
    corpus, principal = state_of(call.request).corpus, await principal_of(call.request)

    def read() -> DocumentEntries:
        named = given.collection
        page = list_documents(
            corpus,
            principal,
            collection_id=None if named is None else collection_id(corpus, principal, named),
            q=given.name,
            limit=given.limit,
            cursor=given.cursor,
        )
        return DocumentEntries(documents=[DocumentEntry.of(each) for each in page.data], next_cursor=page.next_cursor)

    found = await anyio.to_thread.run_sync(read)
    lines = [each.line for each in found.documents]
    if found.next_cursor is not None:
        lines.append(f"More with the cursor {found.next_cursor}")
    return ToolResult("\n".join(lines) or "There is no document.", found)


async def _list_collections(call: ToolCall, _: NoArguments) -> ToolResult:
    corpus, principal = state_of(call.request).corpus, await principal_of(call.request)
    found = await anyio.to_thread.run_sync(
        lambda: corpus.collections.list(principal.tenant_id, allowed=principal.collections)
    )
    collections = [ListedCollection(id=each.id, name=each.name, documents=each.documents) for each in found]
    lines = (f"{each.name} ({each.id}): {each.documents} documents" for each in collections)
    return ToolResult("\n".join(lines) or "There is no collection.", Collections(collections=collections))


async def _usage(call: ToolCall, _: NoArguments) -> ToolResult:
    state, principal = state_of(call.request), await principal_of(call.request)
    own = await anyio.to_thread.run_sync(own_usage, state.usage, state.settings, principal)
    return ToolResult(own.model_dump_json(), own)


READING = (
    Tool(
        name="search",
        title="Search documents",
        description="Find passages in the user's documents by meaning and by words. Returns passages, best first, each "
        "numbered, with its file, page and exact place. Nothing is generated.",
        route=("POST", "/v1/search"),
        arguments=SearchArguments,
        result=SearchPassages,
        run=_search,
    ),
    Tool(
        name="read_passage",
        title="Read a passage",
        description="Read a stretch of a document's text, for instance around a passage that was cited.",
        route=("GET", "/v1/documents/{document_id}/content"),
        arguments=PassageArguments,
        result=Excerpt,
        run=_read_passage,
    ),
    Tool(
        name="list_documents",
        title="List documents",
        description="Name the user's documents, newest first, with their ids, status and own fields.",
        route=("GET", "/v1/documents"),
        arguments=ListArguments,
        result=DocumentEntries,
        run=_list_documents,
    ),
    Tool(
        name="list_collections",
        title="List collections",
        description="Name the collections of documents there are.",
        route=("GET", "/v1/collections"),
        arguments=NoArguments,
        result=Collections,
        run=_list_collections,
    ),
    Tool(
        name="usage",
        title="Read your usage",
        description="The tokens that this user has used today, this month and in all, and what the budgets leave.",
        route=("GET", "/v1/usage"),
        arguments=NoArguments,
        result=OwnUsage,
        run=_usage,
    ),
)
"""The tools that only read, in the order of their list."""
