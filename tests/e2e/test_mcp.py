"""`footnote mcp` as an assistant starts it: a process that speaks the protocol over its standard input and output."""

import asyncio
import os
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")
from mcp import Client, StdioServerParameters
from mcp_types import TextResourceContents

from tests.processes import footnote, running
from tests.server import ADMIN_KEY, require_default_models

TEXT = "The lighthouse of Kiel was built in 1857. It is 32 metres high."


async def test_an_assistant_searches_and_asks_over_stdio(tmp_path: Path):
    require_default_models()
    environment = {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_ADMIN_KEY": ADMIN_KEY,
        "FOOTNOTE_GENERATOR": "extractive",
        "HF_HUB_OFFLINE": "1",
    }
    (tmp_path / "kiel.txt").write_text(TEXT)
    ingest = footnote("ingest", "kiel.txt")
    assert await finished(ingest, tmp_path, environment) == 0

    server = footnote("mcp")
    parameters = StdioServerParameters(command=server[0], args=server[1:], env=environment, cwd=tmp_path)
    async with Client(parameters) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        found = await client.call_tool("search", {"query": "lighthouse of Kiel"})
        answer = await client.call_tool("ask", {"question": "When was the lighthouse of Kiel built?"})
        refused = await client.call_tool("ask", {"question": "x", "collection": "none"})
        (passage, *_) = found.structured_content["passages"]
        read = await client.read_resource(f"footnote://documents/{passage['document_id']}")

    assert tools == {"search", "ask", "read_passage", "list_collections"}
    assert passage["text"] == TEXT[passage["start"] : passage["end"]]
    assert answer.structured_content["answered"]
    (citation, *_) = answer.structured_content["citations"]
    assert "1857" in citation["text"]
    assert citation["text"] == TEXT[citation["start"] : citation["end"]]
    assert refused.is_error
    (content,) = read.contents
    assert isinstance(content, TextResourceContents)
    assert content.text == TEXT


async def finished(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """The exit status of a command."""
    with running(command, cwd=folder, env={**os.environ, **environment}) as process:
        return await asyncio.to_thread(process.wait, 240)
