"""`footnote mcp` as assistants meet it: the real command in a process of its own, the mcp package's own client."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextContent, TextResourceContents

from app.types import Role
from tests.app.api.openai.openai_server import Service, openai_server
from tests.processes import footnote as command_line
from tests.processes import running

TEXT = "The lighthouse of Grey Point was built in 1841. Its keeper counted forty ships in the first year."
MCP_KEY = "a key of the assistants"
COMMAND, *ARGUMENTS = command_line("mcp")
ERAS = ["auto", "legacy"]  # the protocol that needs no session, and the one that begins with a handshake
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class Footnote:
    """A server with a document in each of two collections, and a reader's key for the first alone."""

    url: str
    key: str
    document_id: str

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
        return {**inherited, "FOOTNOTE_URL": self.url, "FOOTNOTE_KEY": self.key}


@dataclass(frozen=True, slots=True)
class Command:
    """`footnote mcp --http`, listening."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    said: Path

    def post(self, key: str | None = None, **headers: str) -> httpx.Response:
        """The answer to an assistant's first message."""
        authorization = {"Authorization": f"Bearer {key}"} if key is not None else {}
        with httpx.Client(trust_env=False, timeout=60) as http:
            return http.post(self.url, json=INITIALIZE, headers={**ACCEPT, **authorization, **headers})


@pytest.fixture(scope="module")
def footnote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Footnote]:
    with openai_server(tmp_path_factory.mktemp("footnote") / "data") as service:
        seen, unseen = (_collection(service, name) for name in ("coast", "secrets"))
        document_id = service.upload(TEXT, "coast.txt", collection_id=seen)
        service.upload("The lighthouse has a hidden cellar.", "cellar.txt", collection_id=unseen)
        yield Footnote(service.url, service.key(Role.READER, collections=(seen,)), document_id)


@pytest.fixture(scope="module")
def keyless(footnote: Footnote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    with listening(tmp_path_factory.mktemp("keyless"), footnote.environment()) as command:
        yield command


@pytest.fixture(scope="module")
def keyed(footnote: Footnote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    environment = {**footnote.environment(), "FOOTNOTE_MCP_KEY": MCP_KEY}
    with listening(tmp_path_factory.mktemp("keyed"), environment) as command:
        yield command


def _collection(service: Service, name: str) -> str:
    return str(service.http.post("/v1/collections", json={"name": name}).json()["id"])


@contextmanager
def listening(folder: Path, environment: dict[str, str]) -> Iterator[Command]:
    """The command in `folder`, on a port of its own choice; killed at the end where it still runs."""
    log, said = folder / "stderr", folder / "stdout"
    with log.open("wb") as stderr, said.open("wb") as stdout:
        arguments = command_line("mcp", "--http", "--port", "0")
        with running(arguments, env=environment, cwd=folder, stderr=stderr, stdout=stdout) as process:
            yield Command(_address(process, log), process, log, said)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:[0-9]+/mcp", log.read_text())
        if found is not None:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"the command does not listen: {log.read_text()[-2000:]}")


@asynccontextmanager
async def assistant(command: Command, *, mode: str = "auto", key: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    async with create_mcp_http_client(headers=headers) as http:
        async with Client(streamable_http_client(command.url, http_client=http), mode=mode) as client:
            yield client


async def read_as_an_assistant(client: Client, footnote: Footnote) -> None:
    """Every tool and the resource, over a real server; what the key may not see is not there."""
    listed = await client.call_tool("list_collections", {})
    found = await client.call_tool("search", {"query": "lighthouse", "collection": "coast"})
    everywhere = await client.call_tool("search", {"query": "hidden cellar"})
    answered = await client.call_tool("ask", {"question": "When was the lighthouse of Grey Point built?"})
    read = await client.call_tool("read_passage", {"document_id": footnote.document_id, "start": 4, "end": 14})
    whole = await client.read_resource(f"footnote://documents/{footnote.document_id}")
    refused = await client.call_tool("search", {"query": "x", "collection": "secrets"})

    assert [each["name"] for each in listed.structured_content["collections"]] == ["coast"]
    (passage, *_) = found.structured_content["passages"]
    assert TEXT[passage["start"] : passage["end"]] == passage["text"]
    assert passage["url"].startswith(f"{footnote.url}/v1/documents/{footnote.document_id}/content?")
    assert {each["filename"] for each in everywhere.structured_content["passages"]} <= {"coast.txt"}
    assert not answered.is_error
    assert answered.structured_content["request_id"].startswith("req_")
    assert read.structured_content["text"] == "lighthouse"
    (text,) = whole.contents
    assert isinstance(text, TextResourceContents)
    assert text.text == TEXT
    assert refused.is_error
    (said,) = refused.content
    assert isinstance(said, TextContent)
    assert "There is no collection 'secrets'." in said.text


@pytest.mark.parametrize("mode", ERAS)
async def test_an_assistant_reads_over_http_what_the_key_may_read(footnote, keyless, mode):
    async with assistant(keyless, mode=mode) as client:
        await read_as_an_assistant(client, footnote)


async def test_an_assistant_reads_over_standard_input_and_output(footnote, tmp_path):
    command = StdioServerParameters(command=COMMAND, args=ARGUMENTS, env=footnote.environment(), cwd=tmp_path)
    async with Client(command) as client:
        await read_as_an_assistant(client, footnote)


@pytest.mark.parametrize("mode", ERAS)
async def test_with_a_key_of_its_own_an_assistant_that_has_it_is_let_in(footnote, keyed, mode):
    async with assistant(keyed, mode=mode, key=MCP_KEY) as client:
        result = await client.call_tool("list_collections", {})

    assert [each["name"] for each in result.structured_content["collections"]] == ["coast"]


def test_with_a_key_of_its_own_nobody_else_is_let_in(footnote, keyed):
    assert keyed.post(MCP_KEY).status_code == 200
    for wrong in (None, "another", MCP_KEY[:-1], f"{MCP_KEY}x", footnote.key):
        refused = keyed.post(wrong)
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "serverInfo" not in refused.text
    assert keyed.post(None, Authorization=f"Basic {MCP_KEY}").status_code == 401
    with httpx.Client(trust_env=False, timeout=60) as http:
        for method in ("GET", "DELETE", "OPTIONS"):
            assert http.request(method, keyed.url, headers=ACCEPT).status_code == 401
    assert MCP_KEY not in keyed.log.read_text()


def test_a_server_without_a_key_logs_that_it_asks_for_none(keyless, keyed):
    assert "It asks for no key" in keyless.log.read_text()
    assert "It asks for no key" not in keyed.log.read_text()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.:80"]
)
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}], ids=ERAS[::-1])
def test_a_foreign_host_header_is_421(keyless, host, version):
    """A page whose own name now leads to 127.0.0.1 sends that name (DNS rebinding)."""
    port = httpx.URL(keyless.url).port
    refused = keyless.post(Host=host.format(port=port), **version)

    assert refused.status_code == 421
    assert "serverInfo" not in refused.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:{port}", "localhost", "localhost:{port}", "localhost:9999"])
def test_this_machines_own_names_are_let_in_on_any_port_that_leads_here(keyless, host):
    assert keyless.post(Host=host.format(port=httpx.URL(keyless.url).port)).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "{own}"])
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}], ids=ERAS[::-1])
def test_whatever_comes_from_a_page_is_refused(keyless, origin, version):
    origin = origin.format(own=keyless.url.removesuffix("/mcp"))
    refused = keyless.post(Origin=origin, **version)

    assert refused.status_code == 403
    assert "Access-Control-Allow-Origin" not in refused.headers
    with httpx.Client(trust_env=False, timeout=60) as http:
        preflight = http.options(keyless.url, headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
    assert preflight.is_error
    assert "Access-Control-Allow-Origin" not in preflight.headers


async def test_a_signal_ends_it_soon_though_an_assistant_listens_and_a_call_is_under_way(tmp_path):
    async def call(command: Command) -> None:
        async with assistant(command) as client:
            await client.call_tool("list_collections", {})

    with socket.create_server(("127.0.0.1", 0)) as silent:  # a server that never answers
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with listening(tmp_path, Footnote(url, "fn_any", "").environment()) as command:
            async with create_mcp_http_client() as http:
                begun = await http.post(command.url, json=INITIALIZE, headers=ACCEPT)
                session = {"Accept": "text/event-stream", "Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
                async with http.stream("GET", command.url, headers=session) as messages:
                    assert messages.status_code == 200, "a stream that has no end of its own"
                    calling = asyncio.create_task(call(command))
                    asked, _ = await asyncio.to_thread(silent.accept)
                    command.process.send_signal(signal.SIGTERM)
                    assert await asyncio.to_thread(command.process.wait, 30) == 0
            asked.close()
            (ended,) = await asyncio.gather(calling, return_exceptions=True)
            assert ended is not None, "nobody answered it"
            assert command.said.read_bytes() == b"", "what is not the protocol goes to standard error"
            assert "Traceback" not in command.log.read_text()


def test_a_port_that_is_taken_is_said_in_a_sentence(footnote, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = subprocess.run(
            command_line("mcp", "--http", "--port", port),
            env=footnote.environment(),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"footnote: Cannot listen on 127.0.0.1:{port}: Address already in use.\n"
