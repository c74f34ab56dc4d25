"""/mcp of a server in its own process, as an assistant on another machine connects to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")

from tests.app.api.mcp.connecting import assistant
from tests.server import ADMIN_KEY, Server

TEXT = "The lighthouse of Kiel was built in 1857. It is 32 metres high."


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", generator="extractive").start()
    yield server
    server.close()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_assistant_adds_a_document_and_asks_about_it(server: Server, mode: str) -> None:
    async with assistant(server.url, ADMIN_KEY, mode=mode) as client:
        added = await client.call_tool("ingest", {"text": TEXT, "filename": "kiel.txt", "wait": 30})
        found = await client.call_tool("search", {"query": "lighthouse of Kiel"})
        answer = await client.call_tool("ask", {"question": "When was the lighthouse of Kiel built?"})

    (document,) = added.structured_content["documents"]
    (passage, *_) = found.structured_content["passages"]
    assert passage["text"] == TEXT[passage["start"] : passage["end"]]
    assert answer.structured_content["answered"]
    (citation, *_) = answer.structured_content["citations"]
    assert citation["document_id"] == document["document_id"]
    assert "1857" in citation["text"]
    assert citation["text"] == TEXT[citation["start"] : citation["end"]]
    log = server.log()
    assert server.stop() == 0
    assert "StreamableHTTP" not in log, "the package's lines of each request stay out of ours"
    assert "mcp.server" not in server.log()
