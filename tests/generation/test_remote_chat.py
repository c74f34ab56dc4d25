"""generation.remote_chat: a server of chat completions is sent messages, and what it wrote is billed by its count."""

import json
from dataclasses import replace
from typing import Any

import pytest

from generation.byte_tokenizer import ByteTokenizer
from generation.errors import ConstraintInvalid
from generation.remote import RemoteEngine
from generation.remote_chat import chat_body, parse_chat_chunk
from generation.remote_config import RemoteConfig
from generation.remote_protocol import ProtocolBroken
from generation.types import CitationMarkers, FinishReason, GenerationRequest, JsonSchema, SamplingParams
from tests.generation.completion_server import Reply, like_ollama, silent
from tests.generation.fakes import LetterTokenizer, RecordingObserver, request
from tests.generation.remotely import Start, outcome, read, serve

__all__ = ["serve"]

TOKENIZER = ByteTokenizer()


def asked(**changed: Any) -> GenerationRequest:
    """A system text and a question, with other fields `changed`."""
    system, question, end = TOKENIZER.chat_frame(["system", "user"])
    prompt = (*system, *TOKENIZER.encode("Be brief."), *question, *TOKENIZER.encode("Grüße?"), *end)
    return replace(request(prompt=prompt), **changed)


async def test_messages_are_sent_and_the_prompt_is_billed_by_the_servers_count(serve: Start) -> None:
    engine, server = serve(like_ollama("Guten", " Tag.", prompt=19, completion=4), api="chat")
    observer = RecordingObserver()

    sent = asked()
    deltas, done = await read(engine.submit(sent, observer=observer))

    assert [delta.text for delta in deltas if delta.text] == ["Guten", " Tag."]
    assert outcome(done) == (FinishReason.STOP, "Guten Tag.", 4)
    assert done.prompt_tokens == 19 != len(sent.prompt)
    assert observer.wait() == done
    body = server.asked().body
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße?"}]
    assert body["stream_options"] == {"include_usage": True}
    assert body["temperature"] == 0.0


async def test_a_server_that_counts_nothing_is_counted_by_bytes(serve: Start) -> None:
    async def script(reply: Reply) -> None:
        await reply.says("Guten")
        await reply.says(" Tag.", finish_reason="stop")
        await reply.done()

    engine, _ = serve(script, api="chat")
    sent = asked()
    _, done = await read(engine.submit(sent, observer=RecordingObserver()))

    assert (done.prompt_tokens, done.generated_tokens) == (len(sent.prompt), 4)


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_does_not_know_the_switch_for_thinking_is_asked_without_from_then_on(
    serve: Start, status: int
) -> None:
    async def refuse(reply: Reply) -> None:
        assert reply.body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}
        await reply.status(status)

    engine, server = serve(refuse, like_ollama("Yes.", prompt=3, completion=2), api="chat")
    for _ in range(2):
        _, done = await read(engine.submit(asked(), observer=RecordingObserver()))
        assert done.text == "Yes."

    assert ["chat_template_kwargs" in reply.body for reply in server.replies] == [True, False, False]


async def test_a_request_that_is_refused_for_another_reason_fails_in_a_sentence(serve: Start) -> None:
    async def refuse(reply: Reply) -> None:
        await reply.status(400, body="secret")

    engine, server = serve(refuse, api="chat")
    _, done = await read(engine.submit(asked(), observer=RecordingObserver()))

    assert (done.finish_reason, done.generated_tokens) == (FinishReason.ERROR, 0)
    assert done.error == "The generation server refused the request (status 400)."
    assert len(server.replies) == 2


async def test_what_a_model_thinks_is_no_text(serve: Start) -> None:
    async def script(reply: Reply) -> None:
        await reply.event(choices=[{"index": 0, "delta": {"role": "assistant", "reasoning_content": "Hm."}}])
        await reply.says("Yes.", finish_reason="stop")
        await reply.usage(prompt=9, completion=5)
        await reply.done()

    engine, _ = serve(script, api="chat")
    _, done = await read(engine.submit(asked(), observer=RecordingObserver()))

    assert outcome(done) == (FinishReason.STOP, "Yes.", 5)


async def test_leaving_closes_the_connection(serve: Start) -> None:
    engine, server = serve(silent, api="chat")
    stream = engine.submit(asked(), observer=RecordingObserver())
    reply = server.asked()
    stream.close()

    assert reply.gone.wait(10)


def test_only_fields_of_openai_and_the_switch_are_sent() -> None:
    sampling = SamplingParams(
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        min_p=0.1,
        repetition_penalty=1.2,
        presence_penalty=0.3,
        frequency_penalty=0.4,
        seed=0,
        stop=("END",),
        logit_bias=((3, 1.0),),
        logprobs=2,
    )
    constraint = JsonSchema(json.dumps({"type": "object"}))
    body = chat_body(asked(sampling=sampling, constraint=constraint), model="m", tokenizer=TOKENIZER)

    assert set(body) == {
        *("model", "messages", "stream", "stream_options", "max_tokens", "temperature", "top_p", "seed", "stop"),
        *("presence_penalty", "frequency_penalty", "response_format", "chat_template_kwargs"),
    }
    assert (body["seed"], body["stop"], body["max_tokens"]) == (0, ["END"], 7)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    plain = chat_body(asked(constraint=CitationMarkers(3)), model="m", tokenizer=TOKENIZER)
    assert not {"seed", "stop", "presence_penalty", "frequency_penalty", "response_format"} & set(plain)


def test_a_schema_that_is_no_json_is_refused() -> None:
    with pytest.raises(ConstraintInvalid):
        chat_body(asked(constraint=JsonSchema("{")), model="m", tokenizer=TOKENIZER)


@pytest.mark.parametrize("delta", ["text", ["text"], {"content": 5}, {"content": {"text": "x"}}])
def test_a_piece_of_another_form_breaks_the_protocol(delta: object) -> None:
    with pytest.raises(ProtocolBroken):
        parse_chat_chunk(json.dumps({"choices": [{"delta": delta}]}).encode())


def test_a_tokenizer_that_does_not_fit_the_protocol_is_refused() -> None:
    config = RemoteConfig(base_url="http://server/v1", model="m", api="chat")
    with pytest.raises(ValueError, match="ByteTokenizer"):
        RemoteEngine(config, LetterTokenizer(), context_window=100)
