"""A remote engine beside a scripted completions server."""

from collections.abc import Callable, Iterator

import pytest

from generation.byte_tokenizer import ByteTokenizer
from generation.delivery import TokenStream
from generation.remote import RemoteEngine
from generation.remote_config import RemoteConfig
from generation.types import Completion, Delta, FinishReason
from tests.generation.completion_server import (
    SECRET,
    CompletionServerStandIn,
    Reply,
    Script,
)
from tests.generation.fakes import LetterTokenizer

Start = Callable[..., tuple[RemoteEngine, CompletionServerStandIn]]


@pytest.fixture
def serve() -> Iterator[Start]:
    """Make an engine over a scripted server; both are closed after the test."""
    closers: list[Callable[[], None]] = []

    def start(
        *scripts: Script, traceparent: Callable[[], str | None] = lambda: None, **settings: object
    ) -> tuple[RemoteEngine, CompletionServerStandIn]:
        server = CompletionServerStandIn(*scripts)
        closers.append(server.close)
        settings = {"reader_grace_s": 30.0, "api_key": SECRET, "read_timeout_s": 10.0} | settings
        config = RemoteConfig(base_url=server.url, model="served", **settings)  # type: ignore[arg-type]
        tokenizer = ByteTokenizer() if config.api == "chat" else LetterTokenizer()
        engine = RemoteEngine(config, tokenizer, context_window=4096, traceparent=traceparent)
        closers.append(engine.close)
        return engine, server

    yield start
    for close in reversed(closers):
        close()


async def read(stream: TokenStream) -> tuple[list[Delta], Completion]:
    """All deltas and the completion, having checked that they agree."""
    items = [item async for item in stream]
    assert [type(item) for item in items] == [Delta] * (len(items) - 1) + [Completion]
    deltas, completion = [item for item in items if isinstance(item, Delta)], items[-1]
    assert isinstance(completion, Completion)
    assert "".join(delta.text for delta in deltas) == completion.text
    return deltas, completion


def outcome(done: Completion) -> tuple[FinishReason, str, int]:
    return done.finish_reason, done.text, done.generated_tokens


async def cut_midway(reply: Reply) -> None:
    await reply.piece("ab", token_ids=None)
    reply.cut()


async def end_midway(reply: Reply) -> None:
    await reply.piece("ab")
    await reply.done()  # in good order, but without a finish reason
