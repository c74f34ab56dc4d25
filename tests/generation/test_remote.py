"""generation.remote makes a server elsewhere an engine like the local one: exact counts, exactly one ending."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from generation.delivery import TokenStream
from generation.errors import ConstraintInvalid, ContextLengthExceeded, EngineFull, EngineStopped, ModelUnavailable
from generation.remote import RemoteEngine
from generation.remote_config import RemoteConfig
from generation.types import CitationMarkers, Completion, Delta, FinishReason, GenerationRequest, JsonSchema
from tests.generation.completion_server import (
    SECRET,
    CompletionServerStandIn,
    Reply,
    Script,
    endless,
    like_llama_cpp,
    like_vllm,
    silent,
)
from tests.generation.fakes import LetterTokenizer, RecordingObserver, request, wait_until

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
        engine = RemoteEngine(config, LetterTokenizer(), context_window=4096, traceparent=traceparent)
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


async def test_a_stop_string_the_server_let_through_is_cut_and_the_request_ended(serve: Start) -> None:
    async def script(reply: Reply) -> None:
        for letter in "ab--cd":
            await reply.piece(letter, token_ids=[ord(letter)])
        await silent(reply)

    engine, server = serve(script)

    deltas, done = await read(engine.submit(request(stop=("--",)), observer=RecordingObserver()))

    assert outcome(done) == (FinishReason.STOP, "ab", 4)
    assert sum(delta.tokens for delta in deltas) == 4
    assert server.asked().gone.wait(5)


async def test_a_server_that_knows_no_end_is_ended_at_max_tokens(serve: Start) -> None:
    engine, server = serve(endless)

    _, done = await read(engine.submit(request(max_tokens=5), observer=RecordingObserver()))

    assert done.finish_reason is FinishReason.LENGTH
    assert server.asked().gone.wait(5)


@pytest.mark.parametrize("script", [endless, silent])
async def test_closing_a_stream_closes_the_connection_though_the_server_says_nothing_more(
    serve: Start, script: Script
) -> None:
    engine, server = serve(script)
    observer = RecordingObserver()
    stream = engine.submit(request(max_tokens=4000), observer=observer)
    reply = await asyncio.to_thread(server.asked)

    stream.close()

    done = await asyncio.to_thread(observer.wait)
    assert await asyncio.to_thread(reply.gone.wait, 5), "no read times out as early as that"
    assert done.finish_reason is FinishReason.CANCELLED
    assert [item async for item in stream] == [done]
    assert engine.stats().cancelled == 1


async def test_closing_a_queued_stream_ends_it_at_once_and_the_server_never_hears_of_it(serve: Start) -> None:
    engine, server = serve(silent, max_running=1)
    engine.submit(request("first"), observer=RecordingObserver())
    server.asked()
    observer = RecordingObserver()
    queued = engine.submit(request("queued"), observer=observer)

    queued.close()
    queued.close()

    done = observer.wait()
    assert done.finish_reason is FinishReason.CANCELLED, "while the first one still runs"
    assert (done.prompt_tokens, done.generated_tokens) == (0, 0), "nobody read it"
    assert len(server.replies) == 1
    assert (engine.stats().waiting, engine.stats().running) == (0, 1)


@pytest.mark.parametrize("place", ["running", "queued"])
async def test_a_deadline_ends_a_sequence_with_what_it_has(serve: Start, place: str) -> None:
    engine, server = serve(endless, max_running=1)
    if place == "queued":
        engine.submit(request("first", max_tokens=4000), observer=RecordingObserver())
        server.asked()

    hurried = replace(request(max_tokens=4000), deadline_s=0.15)
    deltas, done = await read(engine.submit(hurried, observer=RecordingObserver()))

    assert done.finish_reason is FinishReason.DEADLINE
    assert done.generated_tokens == sum(delta.tokens for delta in deltas) == len(done.text)
    assert bool(deltas) == (place == "running")
    assert done.prompt_tokens == (len(hurried.prompt) if place == "running" else 0)
    assert 150 <= done.timings.total_ms < 1000


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again(serve: Start, status: int) -> None:
    async def busy(reply: Reply) -> None:
        await reply.status(status, headers="Retry-After: 0\r\n")

    engine, server = serve(busy, busy, like_vllm("ab"))

    _, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert outcome(done) == (FinishReason.LENGTH, "ab", 2)
    assert len(server.replies) == 3


async def test_a_server_that_stays_busy_is_given_up_after_a_while(serve: Start) -> None:
    async def busy(reply: Reply) -> None:
        await reply.status(503, body=SECRET)

    engine, server = serve(busy, retry_s=0.3)

    _, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert done.error == "The generation server is overloaded (status 503)."
    assert 1 < len(server.replies) < 5


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (400, "The generation server refused the request (status 400)."),
        (401, "The generation server did not accept Footnote's key (status 401)."),
        (404, "The generation server does not know the model or the route (status 404)."),
        (302, "The generation server refused the request (status 302)."),
        (500, "The generation server failed (status 500)."),
    ],
)
async def test_a_refusal_is_a_sentence_with_the_status_and_nothing_of_the_servers(
    serve: Start, caplog: pytest.LogCaptureFixture, status: int, sentence: str
) -> None:
    async def refuse(reply: Reply) -> None:
        await reply.status(status, body=json.dumps({"error": {"message": SECRET}}), headers=f"Location: /{SECRET}\r\n")

    engine, server = serve(refuse)
    observer = RecordingObserver()

    with caplog.at_level(logging.INFO, "footnote.generation"):
        _, done = await read(engine.submit(request(), observer=observer))

    assert outcome(done) == (FinishReason.ERROR, "", 0)
    assert (done.error, done.prompt_tokens) == (sentence, 3)
    assert observer.wait() == done
    assert sentence in caplog.text
    assert SECRET not in caplog.text + repr(engine.info)
    assert len(server.replies) == 1


async def cut_midway(reply: Reply) -> None:
    await reply.piece("ab", token_ids=None)
    reply.cut()


async def end_midway(reply: Reply) -> None:
    await reply.piece("ab")
    await reply.done()  # in good order, but without a finish reason


async def hang_midway(reply: Reply) -> None:
    await reply.piece("ab")
    await silent(reply)


async def break_midway(reply: Reply) -> None:
    await reply.piece("ab")
    await reply.raw(b"data: {nonsense\n\n")
    await silent(reply)


async def fail_midway(reply: Reply) -> None:
    await reply.piece("ab")
    await reply.event(error={"message": SECRET, "code": 500})
    await silent(reply)


async def abort_midway(reply: Reply) -> None:
    await reply.piece("ab", finish_reason="abort")
    await silent(reply)


@pytest.mark.parametrize(
    ("script", "text", "sentence"),
    [
        (cut_midway, "ab", "The connection to the generation server was lost."),
        (end_midway, "ab", "The connection to the generation server was lost."),
        (hang_midway, "ab", "The generation server was silent for 0.2 seconds."),
        (break_midway, "ab", "The generation server failed or sent something unexpected."),
        (fail_midway, "ab", "The generation server failed or sent something unexpected."),
        (abort_midway, "", "The generation server failed or sent something unexpected."),
    ],
)
async def test_a_stream_that_breaks_is_an_error_with_what_came_and_is_not_asked_again(
    serve: Start, caplog: pytest.LogCaptureFixture, script: Script, text: str, sentence: str
) -> None:
    engine, server = serve(script, read_timeout_s=0.2)
    observer = RecordingObserver()

    _, done = await read(engine.submit(request(), observer=observer))

    assert outcome(done) == (FinishReason.ERROR, text, len(text))
    assert done.error == sentence
    assert done.delivered_tokens == len(text)
    assert observer.wait() == done
    assert len(server.replies) == 1
    assert SECRET not in caplog.text


async def test_a_server_that_is_not_there_is_an_error_and_the_engine_says_so(serve: Start) -> None:
    engine, server = serve(silent, health_interval_s=0.05)
    wait_until(engine.alive)
    server.close()
    wait_until(lambda: not engine.alive())

    _, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert done.error == "The generation server cannot be reached."


async def test_the_engine_is_alive_while_the_server_answers(serve: Start, caplog: pytest.LogCaptureFixture) -> None:
    engine, server = serve(silent, health_interval_s=0.05)
    wait_until(engine.alive)

    server.models_status = 500
    wait_until(lambda: not engine.alive())
    server.models_status = 200

    wait_until(engine.alive)
    told = [text for text in caplog.messages if "status 500" in text]
    assert told == ["the generation server answers with status 500"], "once, however often it was seen"


def test_what_could_never_run_is_refused_at_submission(serve: Start) -> None:
    engine, server = serve(silent)
    usual, observer = request(), RecordingObserver()
    narrowed = replace(usual, sampling=replace(usual.sampling, allowed_tokens=(1, 2)))

    with pytest.raises(ContextLengthExceeded):
        engine.submit(request(max_tokens=4094), observer=observer)
    with pytest.raises(ValueError, match="token id"):
        engine.submit(request(prompt=()), observer=observer)
    with pytest.raises(ValueError, match="allowed_tokens"):
        engine.submit(narrowed, observer=observer)
    with pytest.raises(ConstraintInvalid):
        engine.submit(replace(usual, constraint=JsonSchema("{")), observer=observer)

    assert (server.replies, observer.completions, engine.stats().requests) == ([], [], 0)


def test_the_waiting_line_is_bounded(serve: Start) -> None:
    engine, server = serve(silent, max_running=1, max_waiting=2)
    engine.submit(request(), observer=RecordingObserver())
    server.asked()
    for _ in range(2):
        engine.submit(request(), observer=RecordingObserver())

    with pytest.raises(EngineFull) as caught:
        engine.submit(request(), observer=RecordingObserver())

    assert caught.value.retry_after_s >= 1


def test_the_waiting_line_is_bounded_by_the_length_of_its_prompts(serve: Start) -> None:
    engine, server = serve(silent, max_running=1, max_waiting_tokens=10)
    engine.submit(request(), observer=RecordingObserver())
    server.asked()
    alone = engine.submit(request(prompt=range(12)), observer=RecordingObserver())

    with pytest.raises(EngineFull):
        engine.submit(request(prompt=[1]), observer=RecordingObserver())
    assert engine.stats().waiting_tokens == 12, "one that waits alone may be longer than the line"
    alone.close()
    wait_until(lambda: engine.stats().waiting == 0)
    for length in (4, 6):
        engine.submit(request(prompt=range(length)), observer=RecordingObserver())
    with pytest.raises(EngineFull):
        engine.submit(request(prompt=[1]), observer=RecordingObserver())


async def test_no_more_than_max_running_are_at_the_server_and_users_take_turns(serve: Start) -> None:
    first_may_end = threading.Event()

    async def hold(reply: Reply) -> None:
        await asyncio.to_thread(first_may_end.wait, 10)
        await like_vllm("abcdef")(reply)

    engine, server = serve(hold, like_vllm("abcdef"), max_running=1)

    def asks(user: str, prompt: int) -> GenerationRequest:
        return replace(request(f"{user}{prompt}", prompt=[prompt]), user=user)

    streams = [engine.submit(asks("ann", 1), observer=RecordingObserver())]
    server.asked()
    for each in (asks("ann", 2), asks("ann", 3), asks("bob", 4)):
        streams.append(engine.submit(each, observer=RecordingObserver()))
    assert len(server.replies) == 1
    first_may_end.set()
    await asyncio.gather(*map(read, streams))

    order = [reply.body["prompt"][0] for reply in server.replies]
    assert order.index(4) < order.index(3), "bob did not wait for all of ann's"


async def test_closing_the_engine_cancels_everyone_and_tells_the_observers(serve: Start) -> None:
    engine, server = serve(endless, max_running=1)
    observers = [RecordingObserver() for _ in range(3)]
    streams = [
        engine.submit(request(str(number), max_tokens=4000), observer=observer)
        for number, observer in enumerate(observers)
    ]
    wait_until(lambda: engine.stats().decode_tokens > 0)
    began = time.monotonic()

    engine.close()
    engine.close()

    assert time.monotonic() - began < 8, "it waited for readers or the server"
    assert {observer.wait().finish_reason for observer in observers} == {FinishReason.CANCELLED}
    for stream, observer in zip(streams, observers, strict=True):
        assert [item async for item in stream][-1] == observer.wait()
        stream.close()
    assert server.asked().gone.wait(5)
    assert not engine.alive()
    assert (engine.stats().waiting, engine.stats().running) == (0, 0)
    with pytest.raises(EngineStopped):
        engine.submit(request(), observer=RecordingObserver())


def test_a_stream_nobody_reads_is_finished_after_the_grace(serve: Start) -> None:
    engine, _ = serve(like_vllm("abcde"), reader_grace_s=0.2)
    observer = RecordingObserver()

    engine.submit(request(max_tokens=5), observer=observer)

    done = observer.wait()
    assert (done.finish_reason, done.generated_tokens, done.delivered_tokens) == (FinishReason.LENGTH, 5, 0)


async def test_a_text_that_cannot_be_encoded_is_an_error_and_still_counted(serve: Start) -> None:
    class Fussy(LetterTokenizer):
        def encode(self, text: str) -> list[int]:
            raise ValueError("no such letter")

    _, server = serve(like_llama_cpp("abc", completion=3))
    engine = RemoteEngine(RemoteConfig(base_url=server.url, model="served"), Fussy(), context_window=100)
    observer = RecordingObserver()

    _, done = await read(engine.submit(request(), observer=observer))
    engine.close()

    assert (done.finish_reason, done.generated_tokens, observer.wait()) == (FinishReason.ERROR, 3, done)


async def test_whatever_happens_every_accepted_sequence_is_finished_once(serve: Start) -> None:
    """Servers that answer and that break, readers that read, leave and never come, all at once."""
    scripts = [like_vllm("abcdefghij"), endless, cut_midway, like_llama_cpp("ab", "cd", completion=5), end_midway]
    engine, _ = serve(*scripts * 12, max_running=5, max_waiting=200, reader_grace_s=0.2)
    observers = [RecordingObserver() for _ in range(60)]

    async def behave(number: int) -> None:
        hurried = replace(request(str(number), max_tokens=50), deadline_s=0.5 if number % 5 == 0 else None)
        stream = engine.submit(hurried, observer=observers[number])
        if number % 4 == 0:
            stream.close()
        elif number % 4 == 1:
            async for _ in stream:
                stream.close()
        elif number % 4 == 2:
            await read(stream)

    await asyncio.gather(*map(behave, range(60)))
    done = [await asyncio.to_thread(observer.wait) for observer in observers]

    assert [completion.id for completion in done] == [str(number) for number in range(60)]
    assert all(0 <= completion.delivered_tokens <= completion.generated_tokens for completion in done)
    assert all(completion.delivered_tokens == completion.generated_tokens for completion in done[2::4])
    stats = engine.stats()
    assert (stats.waiting, stats.running, stats.requests) == (0, 0, 60)


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


@pytest.mark.parametrize(
    ("models", "status", "sentence"),
    [
        ({"data": [{"id": "served"}]}, 200, "does not tell its context window"),
        ({"data": [{"id": "served", "meta": None}]}, 200, "does not tell its context window"),
        ({"data": [{"id": "another"}]}, 200, "does not serve a model named 'served'"),
        ({"message": SECRET}, 200, "list of models cannot be read"),
        ({"message": SECRET}, 403, "answers with status 403"),
    ],
)
def test_a_server_that_cannot_serve_is_refused_at_start(models: dict[str, object], status: int, sentence: str) -> None:
    server = CompletionServerStandIn(silent)
    server.models, server.models_status = models, status
    config = RemoteConfig(base_url=server.url, model="served", api_key=SECRET)

    with pytest.raises(ModelUnavailable, match=sentence) as caught:
        RemoteEngine.load(config, LetterTokenizer())

    server.close()
    assert SECRET not in str(caught.value)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        RemoteEngine.load(config, LetterTokenizer())


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
