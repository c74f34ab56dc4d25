"""generation.remote_protocol and remote_config: what is sent, what is read, what is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from generation.errors import ConstraintInvalid
from generation.remote_config import RemoteConfig
from generation.remote_protocol import ProtocolBroken, ServerCounts, completion_body, parse_chunk
from generation.types import FinishReason, JsonSchema, TokenLogprob
from tests.generation.fakes import request


def body(**sampling: Any) -> dict[str, Any]:
    asked = request(max_tokens=9)
    return completion_body(replace(asked, sampling=replace(asked.sampling, **sampling)), model="m", cache_salt=None)


def test_parameters_that_are_off_are_sent_so_that_no_servers_default_turns_them_on() -> None:
    assert body() == {
        "model": "m",
        "prompt": [1, 2, 3],
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
        "max_tokens": 9,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


@pytest.mark.parametrize(
    ("sampling", "field", "value"),
    [
        ({"temperature": 0.7}, "temperature", 0.7),
        ({"top_k": 5}, "top_k", 5),
        ({"min_p": 0.1}, "min_p", 0.1),
        ({"repetition_penalty": 1.2}, "repetition_penalty", 1.2),
        ({"seed": (1 << 63) + 5}, "seed", 5),
        ({"stop": ("a", "b")}, "stop", ["a", "b"]),
        ({"ignore_eos": True}, "ignore_eos", True),
        ({"logit_bias": ((7, -3.0),)}, "logit_bias", {"7": -3.0}),
        ({"logprobs": 0}, "logprobs", 0),
    ],
)
def test_sampling_parameters_are_sent_in_the_request_body(sampling: dict[str, Any], field: str, value: object) -> None:
    assert field not in body() or body()[field] != value
    assert body(**sampling)[field] == value


def test_a_json_schema_becomes_the_response_format() -> None:
    asked = replace(request(), constraint=JsonSchema('{"type": "object"}'))

    sent = completion_body(asked, model="m", cache_salt="s")

    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert sent["cache_salt"] == "s"


@pytest.mark.parametrize("schema", ["{", "[" * 100_000, ""], ids=["cut short", "too deep", "empty"])
def test_a_schema_that_is_no_json_is_refused_in_a_sentence_that_does_not_repeat_it(schema: str) -> None:
    asked = replace(request(), constraint=JsonSchema(schema))

    with pytest.raises(ConstraintInvalid) as caught:
        completion_body(asked, model="m", cache_salt=None)

    assert str(caught.value) == "The JSON schema asked of the output is not JSON."


def test_half_a_character_is_replaced() -> None:
    assert parse_chunk(rb'{"choices": [{"text": "a\ud83d"}]}').text == "a\ufffd"
    assert parse_chunk(rb'{"choices": [{"text": "\ud83c\udf4e"}]}').text == "🍎"


def test_a_chunk_with_everything_is_read_whole() -> None:
    event = {
        "choices": [
            {
                "text": "ab",
                "token_ids": [4, 5],
                "finish_reason": "stop",
                "logprobs": {
                    "tokens": ["token_id:4", "token_id:5"],
                    "token_logprobs": [-0.5, -1.0],
                    "top_logprobs": [{"token_id:9": -2.0, "token_id:4": -0.5}, None],
                },
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": None},
    }

    chunk = parse_chunk(json.dumps(event).encode())

    assert (chunk.text, chunk.token_ids, chunk.finish_reason) == ("ab", (4, 5), FinishReason.STOP)
    assert chunk.logprobs == (TokenLogprob(4, -0.5, ((4, -0.5), (9, -2.0))), TokenLogprob(5, -1.0))
    assert chunk.usage == ServerCounts(prompt_tokens=3, completion_tokens=2, cached_tokens=0)


def test_log_probabilities_in_llama_cpps_shape_are_read() -> None:
    entry = {"id": 4, "logprob": -0.5, "top_logprobs": [{"id": 4, "logprob": -0.5}, {"id": 9, "logprob": -2.0}]}
    event = {"choices": [{"text": "a", "logprobs": {"content": [entry]}}]}

    assert parse_chunk(json.dumps(event).encode()).logprobs == (TokenLogprob(4, -0.5, ((4, -0.5), (9, -2.0))),)


def test_a_probability_of_zero_has_a_finite_logarithm() -> None:
    event = '{"choices": [{"text": "a", "logprobs": {"content": [{"id": 4, "logprob": -Infinity}]}}]}'

    assert parse_chunk(event.encode()).logprobs == (TokenLogprob(4, -9999.0),)


@pytest.mark.parametrize(
    "data",
    [
        "nonsense",
        "[]",
        '{"error": {"message": "out of memory"}}',
        '{"object": "error", "message": "x"}',
        '{"choices": [{"text": "a"}, {"text": "b"}]}',
        '{"choices": [{"text": 5}]}',
        '{"choices": [{"text": "a", "token_ids": ["b"]}]}',
        '{"choices": [{"text": "a", "finish_reason": "abort"}]}',
        '{"choices": [], "usage": {"completion_tokens": -1}}',
        '{"choices": [{"text": "a", "logprobs": {"content": [{}]}}]}',
        '{"choices": [{"text": "a", "logprobs": {"content": ["a"]}}]}',
        '{"choices": [{"text": "a", "logprobs": {"content": [{"id": 1e999, "logprob": -1}]}}]}',
        '{"choices": [{"text": "a", "logprobs": {"content": [{"id": 1, "logprob": NaN}]}}]}',
        '{"choices": [{"text": "a", "logprobs": {"tokens": [5], "token_logprobs": [-1]}}]}',
        '{"choices": [{"text": "a", "logprobs": {"tokens": ["token_id:x"], "token_logprobs": [-1]}}]}',
        '{"choices": [], "usage": {"completion_tokens": 100000000000000000000000000000000000000000}}',
        "[" * 100_000,
    ],
)
def test_a_malformed_chunk_raises_protocol_broken(data: str) -> None:
    with pytest.raises(ProtocolBroken):
        parse_chunk(data.encode())


@pytest.mark.parametrize(
    "setting",
    [
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://"},
        {"base_url": "http://host:99999/v1"},
        {"base_url": "http://user:hunter2@host/v1"},
        {"base_url": "http://host/v1?key=hunter2"},
        {"model": ""},
        {"api_key": "line\nbreak"},
        {"context_window": 1},
        {"max_running": 0},
        {"max_waiting": 0},
        {"max_waiting_tokens": 0},
        {"connect_timeout_s": 0.0},
        {"read_timeout_s": float("nan")},
        {"retry_s": -1.0},
    ],
)
def test_a_setting_that_could_not_run_is_refused_by_name_and_without_secrets(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))) as caught:
        RemoteConfig(**{"base_url": "http://host/v1", "model": "m"} | setting)

    assert "hunter2" not in str(caught.value)


def test_the_key_is_not_shown_and_the_routes_lie_below_the_url() -> None:
    config = RemoteConfig(base_url="https://host/v1/", model="m", api_key="sk-hunter2")

    assert "hunter2" not in repr(config)
    assert config.url("completions") == "https://host/v1/completions"
