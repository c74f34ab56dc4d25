"""Adding documents over /mcp, progress, budgets, and documents as resources."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")
from mcp import Client, MCPError
from mcp_types import TextResourceContents

from app.types import Role
from tests.app.api.mcp.connecting import assistant, text_of
from tests.app.api.openai.openai_server import Service

Connecting = Callable[..., AbstractAsyncContextManager[Client]]
WALL = "The wall of Lindau is nine metres high."


class Progress:
    """Remembers what a client was told."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append((progress, total, message))

    @property
    def grows(self) -> bool:
        steps = [progress for progress, _, _ in self.told]
        return bool(steps) and steps == sorted(set(steps))


@pytest.fixture(scope="module")
def yard(openai_service: Service) -> str:
    return str(openai_service.http.post("/v1/collections", json={"name": "yard"}).json()["id"])


@pytest.fixture(params=["auto", "legacy"])
def connecting(openai_service: Service, request: pytest.FixtureRequest) -> Connecting:
    """Connects a member."""
    return partial(assistant, openai_service.url, openai_service.key(Role.MEMBER), mode=request.param)


async def test_a_text_is_added_with_progress_and_can_be_asked_about(
    openai_service: Service, connecting: Connecting, yard: str, request: pytest.FixtureRequest
) -> None:
    name, text, progress = f"{request.node.callspec.id}.txt", f"{WALL} {request.node.callspec.id}", Progress()
    arguments = {"text": text, "filename": name, "collection": "yard", "metadata": {"town": "Lindau"}}
    async with connecting() as client:
        added = await client.call_tool("ingest", arguments, progress_callback=progress)
        again = await client.call_tool("ingest", arguments)
        asking = Progress()
        answer = await client.call_tool("ask", {"question": "How high is the wall?"}, progress_callback=asking)

    (document,) = added.structured_content["documents"]
    stored = openai_service.http.get(f"/v1/documents/{document['document_id']}").json()
    assert (stored["collection_id"], stored["metadata"], stored["status"]) == (yard, {"town": "Lindau"}, "indexed")
    assert (document["status"], added.structured_content["duplicate"]) == ("indexed", False)
    assert again.structured_content["duplicate"] is True
    assert again.structured_content["documents"][0]["document_id"] == document["document_id"]
    assert progress.grows
    last, total, sentence = progress.told[-1]
    assert (last, total, sentence) == (4.0, 4.0, f"{name}: indexed")
    assert answer.structured_content["citations"]
    assert asking.grows
    assert "passages are read" in str(asking.told[0][2])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Give a text with its filename, or a url."),
        ({"text": "x"}, "Give a text with its filename, or a url."),
        ({"text": "x", "filename": "a.txt", "url": "https://example.com"}, "Give a text with its filename, or a url."),
        ({"url": "https://example.com"}, "does not fetch web pages"),
        ({"text": "x", "filename": "a.txt", "collection": "none"}, "There is no collection 'none'."),
        ({"text": "x", "filename": "a.txt", "metadata": {"a": {"b": 1}}}, "metadata field 'a'"),
        ({"text": "x", "filename": "a.txt", "wait": 31}, "wait: "),
        ({"text": "x", "filename": "a.pdf"}, ""),
    ],
)
async def test_what_cannot_be_added_is_refused_and_leaves_nothing(
    openai_service: Service, connecting: Connecting, arguments: dict[str, object], sentence: str
) -> None:
    spool = openai_service.state.settings.data_dir
    before = sorted(str(path) for path in spool.rglob("in_*"))
    async with connecting() as client:
        result = await client.call_tool("ingest", arguments)

    assert result.is_error
    assert sentence in text_of(result)
    assert (result.meta or {})["footnote/problem"]["status"] in {404, 415, 422}
    assert sorted(str(path) for path in spool.rglob("in_*")) == before


async def test_a_reader_is_not_shown_the_tool_and_may_not_call_it(openai_service: Service, yard: str) -> None:
    async with assistant(openai_service.url, openai_service.key(Role.READER)) as client:
        shown = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("ingest", {"text": "x", "filename": "a.txt"})

    assert "ingest" not in shown
    assert result.is_error
    assert text_of(result) == "This needs a key with the role 'member'."


async def test_an_exhausted_budget_refuses_questions_and_not_lists(openai_service: Service) -> None:
    openai_service.http.post("/v1/admin/tenants", json={"id": "poor", "name": "Poor"})
    secret = openai_service.key(Role.ADMIN, tenant="poor")
    with openai_service.client(secret) as http:
        body = {"text": WALL, "filename": "wall.txt", "wait": 20}
        assert http.post("/v1/documents", json=body).json()["status"] == "indexed"
        http.post("/v1/admin/budgets", json={"limit": 1, "period": "day"}).raise_for_status()
    async with assistant(openai_service.url, secret) as client:
        asked = await client.call_tool("ask", {"question": "How high is the wall?"})
        searched = await client.call_tool("search", {"query": "wall"})
        listed = await client.call_tool("list_documents", {})

    for refused in (asked, searched):
        problem = (refused.meta or {})["footnote/problem"]
        assert (refused.is_error, problem["type"]) == (True, "urn:footnote:problem:budget-exceeded")
        assert (problem["unit"], problem["limit"]) == ("tokens", 1)
    assert len(listed.structured_content["documents"]) == 1


async def test_documents_are_resources_of_their_tenant(
    openai_service: Service, connecting: Connecting, yard: str
) -> None:
    document = openai_service.upload(f"{WALL} It has two gates.", "gates.txt", collection_id=yard)
    uri = f"footnote://documents/{document}"
    openai_service.http.post("/v1/admin/tenants", json={"id": "moat", "name": "Moat"})
    async with connecting() as client:
        listed = {str(each.uri): each.name for each in (await client.list_resources()).resources}
        templates = (await client.list_resource_templates()).resource_templates
        (content,) = (await client.read_resource(uri)).contents
        for missing in ("footnote://documents/doc_none", "footnote://documents/", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(missing)
    async with assistant(openai_service.url, openai_service.key(Role.ADMIN, tenant="moat")) as other:
        theirs = (await other.list_resources()).resources
        with pytest.raises(MCPError, match="There is no such document"):
            await other.read_resource(uri)

    assert listed[uri] == "gates.txt"
    assert [template.uri_template for template in templates] == ["footnote://documents/{document_id}"]
    assert isinstance(content, TextResourceContents)
    assert content.text == f"{WALL} It has two gates."
    assert theirs == []
