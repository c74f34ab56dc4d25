"""Remote servers that are busy, refuse, break off or are not there; requests that are refused at submission."""

import json
import logging
from dataclasses import replace

import pytest

from generation.errors import ConstraintInvalid, ContextLengthExceeded, EngineFull, ModelUnavailable
from generation.remote import RemoteEngine
from generation.remote_config import RemoteConfig
from generation.types import FinishReason, JsonSchema
from tests.generation.completion_server import (
    SECRET,
    CompletionServerStandIn,
    Reply,
    Script,
    like_llama_cpp,
    like_vllm,
    silent,
)
from tests.generation.fakes import LetterTokenizer, RecordingObserver, request, wait_until
from tests.generation.remotely import Start, cut_midway, end_midway, outcome, read, serve

__all__ = ["serve"]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_retried_until_it_answers(serve: Start, status: int) -> None:
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


def test_a_request_the_server_could_never_run_is_refused_at_submission(serve: Start) -> None:
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
