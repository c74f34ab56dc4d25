"""generation.remote makes a server elsewhere an engine like the local one: exact counts, exactly one ending."""

import json
from dataclasses import replace

import pytest

from generation.remote import RemoteEngine
from generation.remote_config import RemoteConfig
from generation.types import CitationMarkers, Delta, FinishReason
from tests.generation.completion_server import (
    SECRET,
    CompletionServerStandIn,
    Reply,
    like_llama_cpp,
    like_vllm,
    silent,
)
from tests.generation.fakes import LetterTokenizer, RecordingObserver, request
from tests.generation.remotely import Start, outcome, read, serve

__all__ = ["serve"]


async def test_the_trace_at_hand_when_a_request_is_submitted_goes_on_at_the_server(serve: Start) -> None:
    headers = iter(["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None])
    engine, server = serve(like_vllm("abc"), traceparent=lambda: next(headers))

    for _ in range(2):
        await read(engine.submit(request(max_tokens=3), observer=RecordingObserver()))

    sent = [reply.headers.get("traceparent") for reply in server.replies]
    assert sent == ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None]


async def test_a_server_that_tells_ids_gives_the_local_engines_completion(serve: Start) -> None:
    engine, server = serve(like_vllm("abc", cached=2))
    observer = RecordingObserver()

    deltas, done = await read(engine.submit(request(prompt=(7, 8, 9), max_tokens=3), observer=observer))

    assert deltas == [Delta("a", 1), Delta("b", 1), Delta("c", 1)]
    assert outcome(done) == (FinishReason.LENGTH, "abc", 3)
    assert (done.token_ids, done.reported_tokens) == ((97, 98, 99), None)
    assert (done.prompt_tokens, done.cached_tokens, done.delivered_tokens) == (3, 2, 3)
    assert observer.wait() == done
    assert server.asked().body["prompt"] == [7, 8, 9]
    assert server.asked().headers["authorization"] == f"Bearer {SECRET}"
    stats = engine.stats()
    assert (stats.prefill_tokens, stats.cached_tokens, stats.decode_tokens, stats.requests) == (1, 2, 3, 1)
    assert (stats.waiting, stats.running) == (0, 0)
    assert stats.first_token_s is not None and sum(stats.first_token_s.counts) == 1


async def test_the_end_of_sequence_token_is_covered_by_a_last_delta_without_text(serve: Start) -> None:
    engine, _ = serve(like_vllm("ab", finish_reason="stop"))

    deltas, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert deltas[-1] == Delta("", 1)
    assert (done.token_ids, done.finish_reason) == ((97, 98, 0), FinishReason.STOP)


async def test_without_ids_the_servers_usage_is_the_count_and_the_text_gives_the_ids(serve: Start) -> None:
    engine, _ = serve(like_llama_cpp("ab", "c", completion=4))

    deltas, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert deltas == [Delta("ab", 2), Delta("c", 1), Delta("", 1)]
    assert outcome(done) == (FinishReason.STOP, "abc", 4)
    assert (done.token_ids, done.reported_tokens, done.delivered_tokens) == ((97, 98, 99), 4, 4)


async def test_an_estimate_above_the_servers_count_is_not_delivered(serve: Start) -> None:
    engine, _ = serve(like_llama_cpp("abcdef", completion=2))

    _, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert (done.generated_tokens, done.delivered_tokens) == (2, 2)


async def test_running_counts_of_the_server_go_before_estimates(serve: Start) -> None:
    async def script(reply: Reply) -> None:
        for count, text in ((1, "ab"), (2, "cd")):
            await reply.event(choices=[{"text": text}], usage={"prompt_tokens": 3, "completion_tokens": count})
        reply.cut()

    engine, _ = serve(script)

    deltas, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert [delta.tokens for delta in deltas] == [1, 1]
    assert outcome(done) == (FinishReason.ERROR, "abcd", 2)


async def test_a_prompt_the_server_counts_otherwise_is_billed_as_it_counted_and_reported_once(
    serve: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(reply: Reply) -> None:
        await reply.piece("a", token_ids=[97], finish_reason="length")
        await reply.usage(prompt=5, completion=1)
        await reply.done()

    engine, _ = serve(script)

    for _ in range(2):
        _, done = await read(engine.submit(request(prompt=(1, 2, 3)), observer=RecordingObserver()))

    assert done.prompt_tokens == 5
    assert sum("counted 5 prompt tokens where 3 were sent" in text for text in caplog.messages) == 1


async def test_the_observer_hears_of_progress_every_32_tokens_before_the_end(serve: Start) -> None:
    engine, _ = serve(like_vllm("abcdefghij" * 10))
    observer = RecordingObserver()

    await read(engine.submit(request(max_tokens=100), observer=observer))

    assert observer.checkpoints == [32, 64, 96]
    assert observer.wait().generated_tokens == 100


async def test_characters_and_events_may_be_cut_anywhere_on_the_way(serve: Start) -> None:
    text = "né 日本\u2028🍎\x85"  # with line separators that are none in this protocol

    async def script(reply: Reply) -> None:
        events = b": hello\r\n\r\n"
        for letter in text:
            choice = {"text": letter, "token_ids": [ord(letter)]}
            events += b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + b"\r\n\r\n"
        for byte in events:
            await reply.raw(bytes([byte]))
        await reply.piece("", token_ids=[], finish_reason="stop")
        await reply.done()

    engine, _ = serve(script)

    deltas, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert [delta.text for delta in deltas] == list(text)
    assert outcome(done) == (FinishReason.STOP, text, len(text))


@pytest.mark.parametrize("told", [{"max_model_len": 1234}, {"meta": {"n_ctx": 1234}}], ids=["vLLM", "llama.cpp"])
def test_the_context_window_comes_from_the_server_when_it_tells_it(told: dict[str, object]) -> None:
    server = CompletionServerStandIn(silent)
    server.models = {"object": "list", "data": [{"id": "served", **told}]}
    config = RemoteConfig(base_url=server.url, model="served", api_key=SECRET)
    engine = RemoteEngine.load(config, LetterTokenizer())

    assert (engine.info.model, engine.info.context_window, engine.info.device) == ("served", 1234, "remote")

    engine.close()
    server.close()


def test_a_configured_context_window_needs_no_server_at_start() -> None:
    config = RemoteConfig(base_url="http://127.0.0.1:9/v1", model="served", context_window=99)

    engine = RemoteEngine.load(config, LetterTokenizer())

    assert (engine.info.context_window, engine.alive()) == (99, False)
    engine.close()


async def test_citation_markers_are_dropped_and_tenants_share_no_cached_prefix(serve: Start) -> None:
    engine, server = serve(like_vllm("ab"))
    marked = replace(request(), constraint=CitationMarkers(sources=3))

    for salt in ("tenant-a", "tenant-b", "tenant-a", ""):
        await read(engine.submit(replace(marked, salt=salt), observer=RecordingObserver()))

    salts = [reply.body.get("cache_salt") for reply in server.replies]
    assert salts[0] == salts[2] != salts[1]
    assert salts[3] is None
    assert "tenant" not in json.dumps([reply.body for reply in server.replies])
    assert "response_format" not in server.replies[0].body
