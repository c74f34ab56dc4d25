"""/mcp over a socket, by the protocol's own client, in its newest version and with the handshake of the older ones."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import sqlalchemy as sa

pytest.importorskip("mcp", reason="the extra `mcp`")
from mcp import Client, MCPError

from app.db.tables.ledger import api_request
from app.types import Role
from tests.app.api.mcp.connecting import assistant, text_of
from tests.app.api.openai.openai_server import Service
from tests.server import ADMIN_KEY

SHIPS = "The keeper counted forty ships in the harbour of Lindau."
QUESTION = "How many ships did the keeper count in the harbour of Lindau?"
Connecting = Callable[[], AbstractAsyncContextManager[Client]]
READING = {"ask", "search", "read_passage", "list_documents", "list_collections", "usage"}


@pytest.fixture(scope="module")
def pier(openai_service: Service) -> str:
    """A collection that says how many ships there are."""
    made = str(openai_service.http.post("/v1/collections", json={"name": "pier"}).json()["id"])
    openai_service.upload(SHIPS, "pier.txt", collection_id=made, metadata={"year": 2025})
    return made


@pytest.fixture(params=["auto", "legacy"])
def connecting(openai_service: Service, request: pytest.FixtureRequest) -> Connecting:
    """Connects an administrator; not a client itself, which must be closed in the task that opened it."""
    return partial(assistant, openai_service.url, ADMIN_KEY, mode=request.param)


async def test_a_client_learns_what_the_server_is_and_what_its_tools_take_and_give(connecting: Connecting) -> None:
    async with connecting() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        server, instructions = client.server_info, client.instructions

    assert server is not None
    assert (server.name, server.title) == ("footnote", "Footnote")
    assert "never an instruction" in (instructions or "")
    assert set(tools) >= READING
    assert all(tool.description and tool.title for tool in tools.values())
    assert all(tool.output_schema and tool.output_schema["type"] == "object" for tool in tools.values())
    schemas = json.dumps([(tool.input_schema, tool.output_schema) for tool in tools.values()])
    assert '"type": [' not in schemas, "some model providers refuse a list of types"
    assert all(field.get("description") for field in tools["ask"].input_schema["properties"].values())
    assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == READING


async def test_a_search_gives_the_exact_characters_of_each_passage(
    openai_service: Service, connecting: Connecting, pier: str
) -> None:
    async with connecting() as client:
        result = await client.call_tool("search", {"query": "ships", "collection": "pier", "filter": {"year": 2025}})
        none = await client.call_tool("search", {"query": "ships", "collection": pier, "filter": {"year": 1999}})

    (passage,) = result.structured_content["passages"]
    content = openai_service.http.get(f"/v1/documents/{passage['document_id']}/content").text
    assert content[passage["start"] : passage["end"]] == passage["text"] == SHIPS
    assert passage["url"].startswith(f"{openai_service.url}/v1/documents/{passage['document_id']}/content?version=1")
    assert text_of(result).startswith(f"[1] pier.txt (document {passage['document_id']} version 1, characters 0-")
    assert none.structured_content == {"passages": []}
    assert not none.is_error


async def test_an_answer_has_its_footnotes_and_is_on_the_ledger_by_its_kind(
    openai_service: Service, connecting: Connecting, pier: str
) -> None:
    async with connecting() as client:
        result = await client.call_tool("ask", {"question": QUESTION, "collection": "pier"})

    told = result.structured_content
    assert (told["answered"], told["text"]) == (True, "Forty ships.[1]")
    assert [citation["text"] for citation in told["citations"]] == [SHIPS]
    assert text_of(result).startswith("Forty ships.[1]\n\n[1] pier.txt")
    rows = openai_service.state.usage.ledger.usage(told["request_id"])
    assert sum(row.output_tokens for row in rows) > 0
    kind = sa.select(api_request.c.endpoint).where(api_request.c.request_id == told["request_id"])
    with openai_service.state.database.read() as connection:
        assert connection.execute(kind).scalar_one() == "mcp.ask"


async def test_a_passage_is_read_around_a_citation_and_documents_are_listed(connecting: Connecting, pier: str) -> None:
    async with connecting() as client:
        listed = await client.call_tool("list_documents", {"collection": "pier", "name": "pier", "limit": 1})
        (document,) = listed.structured_content["documents"]
        named = {"document_id": document["document_id"]}
        part = await client.call_tool("read_passage", {**named, "start": 4, "end": 10, "version": 1})
        beyond = await client.call_tool("read_passage", {**named, "start": 10_000})

    assert (document["filename"], document["status"], document["metadata"]) == ("pier.txt", "indexed", {"year": 2025})
    assert document["collection_id"] == pier
    assert text_of(listed).startswith(f"pier.txt: document {document['document_id']} version 1")
    assert part.structured_content == {
        "document_id": document["document_id"],
        "version": 1,
        "start": 4,
        "end": 10,
        "total": len(SHIPS),
        "text": SHIPS[4:10],
    }
    assert (beyond.structured_content["text"], beyond.structured_content["start"]) == ("", len(SHIPS))


async def test_collections_and_the_callers_own_usage(connecting: Connecting, pier: str) -> None:
    async with connecting() as client:
        collections = await client.call_tool("list_collections", {})
        usage = await client.call_tool("usage", {})

    assert {"id": pier, "name": "pier", "documents": 1} in collections.structured_content["collections"]
    assert usage.structured_content["object"] == "usage"
    assert usage.structured_content["all_time"]["embeddings"]["input_tokens"] > 0


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "sentence"),
    [
        ("read_passage", {"document_id": "doc_none"}, 404, "There is no such document."),
        ("read_passage", {"document_id": "../../v1/usage"}, 404, "There is no such document."),
        ("search", {"query": "x", "collection": "none"}, 404, "There is no collection 'none'."),
        ("search", {"query": ""}, 422, "query: "),
        ("search", {"query": "x", "top_k": 51}, 422, "top_k: "),
        ("search", {"query": "x", "colour": "red"}, 422, "colour: "),
        ("search", {"query": "x", "filter": {"year": {"$no": 1}}}, 422, "$no"),
        ("list_documents", {"cursor": "broken"}, 422, "cursor"),
        ("ask", {}, 422, "question: "),
        ("usage", {"since": 1}, 422, "since: "),
    ],
)
async def test_a_refusal_is_an_error_of_the_tool_in_the_words_of_the_route(
    connecting: Connecting, tool: str, arguments: dict[str, object], status: int, sentence: str
) -> None:
    async with connecting() as client:
        result = await client.call_tool(tool, arguments)

    assert result.is_error
    assert sentence in text_of(result)
    problem = (result.meta or {})["footnote/problem"]
    assert problem["status"] == status
    assert str(problem["instance"]).startswith("req_")


async def test_an_unknown_tool_is_an_error_of_the_protocol(connecting: Connecting) -> None:
    async with connecting() as client:
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("delete_everything", {})


async def test_two_tenants_at_once_see_only_their_own(openai_service: Service, pier: str) -> None:
    openai_service.http.post("/v1/admin/tenants", json={"id": "isle", "name": "Isle"})
    other = openai_service.key(Role.READER, tenant="isle")
    here = openai_service.http.get(f"/v1/documents?collection_id={pier}").json()["data"][0]["id"]
    async with assistant(openai_service.url, ADMIN_KEY) as ours, assistant(openai_service.url, other) as theirs:
        seen = await ours.call_tool("search", {"query": "ships"})
        for tool, arguments, field in (
            ("search", {"query": "ships"}, "passages"),
            ("list_documents", {}, "documents"),
            ("list_collections", {}, "collections"),
        ):
            result = await theirs.call_tool(tool, arguments)
            assert result.structured_content[field] == [], tool
        stolen = await theirs.call_tool("read_passage", {"document_id": here})
        searched = await theirs.call_tool("search", {"query": "ships", "collection": pier})

    assert seen.structured_content["passages"]
    assert [text_of(stolen), stolen.is_error] == ["There is no such document.", True]
    assert searched.is_error


async def test_a_key_of_one_collection_sees_only_it(openai_service: Service, pier: str) -> None:
    openai_service.upload("The mayor of Lindau keeps goats.", "goats.txt")
    key = openai_service.key(Role.READER, collections=(pier,))
    async with assistant(openai_service.url, key) as client:
        documents = await client.call_tool("list_documents", {})
        collections = await client.call_tool("list_collections", {})
        found = await client.call_tool("search", {"query": "goats of the mayor"})

    assert [each["filename"] for each in documents.structured_content["documents"]] == ["pier.txt"]
    assert [each["id"] for each in collections.structured_content["collections"]] == [pier]
    assert {each["filename"] for each in found.structured_content["passages"]} <= {"pier.txt"}
