"""app.mcp: an assistant's tools over the HTTP contract, by the mcp package's own client."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")
from mcp import Client, MCPError
from mcp_types import TextContent, TextResourceContents

from app.mcp.server import create_server

HIT = {
    "document_id": "doc_1",
    "version": 2,
    "filename": "report.pdf",
    "page_start": 4,
    "page_end": 4,
    "start_char": 10,
    "end_char": 22,
    "text": "Revenue rose",
}
CITATION = {key: value for key, value in HIT.items() if key != "text"} | {
    "index": 1,
    "cited_text": "Revenue rose",
    "verified": False,
}
ANSWER = {"id": "req_1", "answered": True, "reason": None, "answer": "It rose [1].", "citations": [CITATION]}
COLLECTIONS = {"data": [{"id": "col_1", "name": "reports", "documents": 3}], "next_cursor": None}
CONTENT = {"document_id": "doc_1", "version": 2, "start": 0, "end": 4, "total": 9, "text": "Text"}


class Footnote:
    """A server that answers with fixed bodies and remembers what it was asked."""

    def __init__(self, **bodies: object) -> None:
        self.bodies = {
            "search": {"data": [HIT]},
            "ask": ANSWER,
            "collections": COLLECTIONS,
            "content": CONTENT,
        } | bodies
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        body = self.bodies[request.url.path.rsplit("/", 1)[-1]]
        return await body() if callable(body) else httpx.Response(200, json=body)

    @property
    def sent(self) -> dict[str, object]:
        sent: dict[str, object] = json.loads(self.requests[-1].content)
        return sent


@asynccontextmanager
async def assistant(handle: Callable[[httpx.Request], object]) -> AsyncIterator[Client]:
    transport = httpx.MockTransport(handle)  # type: ignore[arg-type]  # a handler that is awaited
    async with httpx.AsyncClient(transport=transport, base_url="http://footnote.test") as http:
        async with Client(create_server(http, version="1")) as client:
            yield client


def text_of(content: object, *_: object) -> str:
    """Of the first, which is text."""
    assert isinstance(content, TextContent | TextResourceContents)
    return content.text


async def test_the_tools_say_what_they_take_and_give():
    async with assistant(Footnote()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

    assert set(tools) == {"search", "ask", "read_passage", "list_collections"}
    assert all(tool.description and tool.output_schema for tool in tools.values())
    assert all(field.get("description") for field in tools["ask"].input_schema["properties"].values())


async def test_a_search_gives_numbered_passages_and_the_same_as_data():
    footnote = Footnote()
    async with assistant(footnote) as client:
        result = await client.call_tool("search", {"query": "revenue", "filter": {"year": 2025}, "top_k": 3})

    assert footnote.sent == {"query": "revenue", "top_k": 3, "filter": {"year": 2025}}
    assert "[1] report.pdf, page 4 (document doc_1 version 2, characters 10-22)\nRevenue rose" in text_of(
        *result.content
    )
    assert result.structured_content["passages"] == [
        {
            "number": 1,
            "document_id": "doc_1",
            "version": 2,
            "filename": "report.pdf",
            "page_start": 4,
            "page_end": 4,
            "start": 10,
            "end": 22,
            "text": "Revenue rose",
            "verified": None,
            "url": "http://footnote.test/v1/documents/doc_1/content?version=2&start=10&end=22",
        }
    ]


async def test_an_answer_comes_with_its_citations_and_their_doubts():
    footnote = Footnote()
    async with assistant(footnote) as client:
        result = await client.call_tool("ask", {"question": "Did it rise?", "collection": "reports"})

    assert footnote.sent == {"question": "Did it rise?", "top_k": 8, "collection_ids": ["col_1"]}
    assert text_of(*result.content).startswith("It rose [1].\n\n[1] report.pdf, page 4 (not verified)")
    assert result.structured_content["citations"][0]["verified"] is False
    assert result.structured_content["request_id"] == "req_1"


async def test_a_passage_that_a_lead_and_its_quote_cite_is_listed_once_in_plain_markdown():
    text = "**Revenue** [1]\n\n> Revenue rose [1]\n>\n> It fell. [1]"
    citations = [CITATION, CITATION | {"verified": True}, CITATION | {"start_char": 30, "end_char": 38}]
    async with assistant(Footnote(ask=ANSWER | {"answer": text, "citations": citations})) as client:
        result = await client.call_tool("ask", {"question": "Did it rise?"})

    assert text_of(*result.content).startswith(f"{text}\n\n[1] report.pdf, page 4 (document doc_1")
    assert [(one["start"], one["verified"]) for one in result.structured_content["citations"]] == [
        (10, True),
        (30, False),
    ]


async def test_a_passage_and_a_documents_text_can_be_read():
    footnote = Footnote()
    async with assistant(footnote) as client:
        result = await client.call_tool(
            "read_passage", {"document_id": "doc_1", "start": 0, "end": 99_999, "version": 2}
        )
        asked = dict(footnote.requests[-1].url.params)
        read = await client.read_resource("footnote://documents/doc_1")

    assert asked == {"start": "0", "end": "20000", "version": "2"}
    assert result.structured_content["text"] == "Text" == text_of(*result.content) == text_of(*read.contents)


ARGUMENTS: dict[str, dict[str, object]] = {
    "search": {"query": "revenue", "collection": "reports"},
    "ask": {"question": "Did it rise?", "collection": "reports"},
    "read_passage": {"document_id": "doc_1"},
    "list_collections": {},
}


async def test_an_assistant_only_reads():
    """SECURITY.md says so: no tool, with whatever key, creates, changes or deletes anything."""
    footnote = Footnote()
    async with assistant(footnote) as client:
        tools = (await client.list_tools()).tools
        for tool in tools:
            await client.call_tool(tool.name, ARGUMENTS[tool.name])
        await client.read_resource("footnote://documents/doc_1")
        templates = (await client.list_resource_templates()).resource_templates

    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
    assert [template.uri_template for template in templates] == ["footnote://documents/{document_id}"]
    asked = {(request.method, request.url.path) for request in footnote.requests}
    assert {path for method, path in asked if method != "GET"} == {"/v1/search", "/v1/ask"}
    assert {method for method, _ in asked} == {"GET", "POST"}


async def refusing() -> httpx.Response:
    return httpx.Response(404, json={"detail": "There is no such document."})


async def redirecting() -> httpx.Response:
    return httpx.Response(308, headers={"Location": "https://footnote.test/v1/search"})


async def unreachable() -> httpx.Response:
    raise httpx.ConnectError("http://user:password@secret.host")


@pytest.mark.parametrize(
    ("tool", "arguments", "bodies", "said"),
    [
        ("read_passage", {"document_id": "doc_9"}, {"content": refusing}, "There is no such document."),
        ("read_passage", {"document_id": "../admin/keys"}, {}, "There is no such document."),
        ("ask", {"question": "x", "collection": "none"}, {}, "There is no collection 'none'"),
        ("search", {"query": "x"}, {"search": redirecting}, "The server answered 308, which leads to another address"),
        ("search", {"query": "x"}, {"search": unreachable}, "cannot be reached: ConnectError."),
    ],
)
async def test_a_refusal_is_a_tool_error_in_words(tool, arguments, bodies, said):
    async with assistant(Footnote(**bodies)) as client:
        result = await client.call_tool(tool, arguments)

    assert result.is_error
    assert said in text_of(*result.content)
    assert "password" not in text_of(*result.content)


async def test_a_document_that_does_not_exist_is_no_resource():
    async with assistant(Footnote(content=refusing)) as client:
        with pytest.raises(MCPError, match="no such document"):
            await client.read_resource("footnote://documents/doc_9")


async def test_a_tool_call_that_is_cancelled_cancels_its_request():
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def endless() -> httpx.Response:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    async with assistant(Footnote(ask=endless)) as client:
        call = asyncio.create_task(client.call_tool("ask", {"question": "x"}))
        await begun.wait()
        call.cancel()
        await asyncio.wait_for(cancelled.wait(), timeout=10)
