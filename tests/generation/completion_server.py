"""A stand-in for vLLM, SGLang and llama.cpp's server: real HTTP on a real socket, saying what a test scripts."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tests.generation.fakes import wait_until

SECRET = "sk-not-for-any-log"


class Reply:
    """One request and the response to it, in chunked transfer encoding so that a cut shows."""

    def __init__(self, body: dict[str, Any], headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        self.body = body
        self.headers = headers
        self.gone = threading.Event()
        self._writer = writer
        self._begun = False

    async def status(self, code: int, *, body: str = "", headers: str = "") -> None:
        """A whole response without a stream."""
        data = body.encode()
        self._writer.write(f"HTTP/1.1 {code} X\r\nContent-Length: {len(data)}\r\n{headers}\r\n".encode() + data)
        await self._writer.drain()

    async def raw(self, data: bytes) -> None:
        """Bytes of the stream, as they are."""
        if not self._begun:
            self._begun = True
            self._writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self._writer.drain()

    async def event(self, **event: Any) -> None:
        await self.raw(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n")

    async def piece(self, text: str, **choice: Any) -> None:
        await self.event(choices=[{"index": 0, "text": text, "finish_reason": None, **choice}])

    async def says(self, content: str | None, **choice: Any) -> None:
        """A piece of chat completions."""
        delta = {} if content is None else {"role": "assistant", "content": content}
        await self.event(choices=[{"index": 0, "delta": delta, "finish_reason": None, **choice}])

    async def usage(self, *, prompt: int, completion: int, cached: int | None = None) -> None:
        details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
        await self.event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": completion, **details})

    async def done(self) -> None:
        await self.raw(b"data: [DONE]\n\n")
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """Drop the connection as it is."""
        self._writer.transport.abort()


Script = Callable[[Reply], Awaitable[None]]


def like_vllm(text: str, *, finish_reason: str = "length", cached: int | None = None) -> Script:
    """Every letter a chunk with its id; usage in a chunk of its own."""

    async def script(reply: Reply) -> None:
        for letter in text:
            await reply.piece(letter, token_ids=[ord(letter)], logprobs=None)
        eos = [0] if finish_reason == "stop" else []
        await reply.piece("", token_ids=eos, finish_reason=finish_reason)
        await reply.usage(prompt=len(reply.body["prompt"]), completion=len(text) + len(eos), cached=cached)
        await reply.done()

    return script


def like_llama_cpp(*pieces: str, finish_reason: str = "stop", completion: int, cached: int = 0) -> Script:
    """No ids; usage in the last chunk, beside the finish reason."""

    async def script(reply: Reply) -> None:
        for piece in pieces:
            await reply.piece(piece, logprobs=None)
        usage = {
            "prompt_tokens": len(reply.body["prompt"]),
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        await reply.event(choices=[{"index": 0, "text": "", "finish_reason": finish_reason}], usage=usage)
        await reply.done()

    return script


def like_ollama(*pieces: str, prompt: int, completion: int, finish_reason: str = "stop") -> Script:
    """Chat completions: no ids, usage in a chunk of its own."""

    async def script(reply: Reply) -> None:
        for piece in pieces:
            await reply.says(piece)
        await reply.says(None, finish_reason=finish_reason)
        await reply.usage(prompt=prompt, completion=completion)
        await reply.done()

    return script


async def endless(reply: Reply) -> None:
    """A letter every few milliseconds until the client leaves."""
    number = 0
    while not reply.gone.is_set():
        letter = "abcdefghij"[number % 10]
        await reply.piece(letter, token_ids=[ord(letter)])
        number += 1
        await asyncio.sleep(0.002)


async def silent(reply: Reply) -> None:
    """Nothing, not even a head, until the client leaves."""
    while not reply.gone.is_set():
        await asyncio.sleep(0.005)


class CompletionServerStandIn:
    """Answers `POST /v1/completions` by the scripts in turn, the last one for ever, and `GET /v1/models`."""

    def __init__(self, *scripts: Script, max_model_len: int | None = 4096) -> None:
        self.replies: list[Reply] = []
        self.models: dict[str, Any] = {"object": "list", "data": [{"id": "served", "max_model_len": max_model_len}]}
        self.models_status = 200
        self.looks = 0
        self._scripts = list(scripts)
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def asked(self, count: int = 1) -> Reply:
        """The latest of at least `count` requests."""
        wait_until(lambda: len(self.replies) >= count)
        return self.replies[-1]

    def close(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut(self) -> None:
        for listener in self._server.sockets:
            self._loop.remove_reader(listener.fileno())
        await asyncio.sleep(0.01)  # who was accepted last has a transport now; of a closed server its socket would leak
        self._server.close()
        for reply in self.replies:
            reply.gone.set()
        this = asyncio.current_task()
        while others := asyncio.all_tasks() - {this}:
            while self._connections:  # one that was only just accepted must begin before it can end
                self._connections.pop().cancel()
            await asyncio.wait(others, timeout=0.05)
        await asyncio.sleep(0.01)  # transports close their sockets a turn of the loop later

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._connections.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        reply = Reply(json.loads(body or b"{}"), headers, writer)
        if head.startswith("GET /v1/models"):
            self.looks += 1
            await reply.status(self.models_status, body=json.dumps(self.models))
            return
        assert head.startswith(("POST /v1/completions ", "POST /v1/chat/completions ")), head
        assert ("messages" in reply.body) is ("/chat/" in head)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        self.replies.append(reply)
        watch = asyncio.create_task(self._notice(reader, reply))
        try:
            await script(reply)
        except ConnectionError:
            reply.gone.set()
            raise
        finally:
            watch.cancel()

    async def _notice(self, reader: asyncio.StreamReader, reply: Reply) -> None:
        with suppress(ConnectionError):  # as gone as by a polite end
            await reader.read(1)
        reply.gone.set()
