"""Every parameter of OpenAI's chat completion is honoured, accepted as one that changes nothing, or refused by name."""

import typing
from typing import Any

import pytest
from openai.types.chat import completion_create_params as reference
from pydantic import ValidationError

from app.api.openai.schemas.chat import ChatCompletionRequest
from app.api.schemas.unsupported import UNSUPPORTED

HONOURED: dict[str, Any] = {
    "frequency_penalty": 0.5,
    "logit_bias": {"65": -100},
    "logprobs": True,
    "max_completion_tokens": 5,
    "max_tokens": 5,
    "messages": [{"role": "user", "content": "How many ships?"}],
    "model": "footnote",
    "n": 2,
    "presence_penalty": 0.5,
    "response_format": {"type": "text"},
    "seed": 7,
    "stop": ["\n"],
    "stream": False,
    "stream_options": {"include_usage": True, "include_obfuscation": True},
    "temperature": 0.5,
    "top_logprobs": 3,
    "top_p": 0.5,
}
WITHOUT_EFFECT: dict[str, Any] = {
    "metadata": {"team": "blue"},
    "modalities": ["text"],
    "parallel_tool_calls": True,
    "prompt_cache_key": "k",
    "prompt_cache_retention": "in_memory",
    "safety_identifier": "s",
    "service_tier": "auto",
    "store": False,
    "tool_choice": "none",
    "function_call": "none",
    "user": "u",
}
REFUSED: dict[str, Any] = {
    "audio": {"voice": "alloy", "format": "mp3"},
    "functions": [{"name": "f"}],
    "moderation": {"model": "m"},
    "prediction": {"type": "content", "content": "x"},
    "prompt_cache_options": {"mode": "explicit"},
    "reasoning_effort": "low",
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "verbosity": "low",
    "web_search_options": {},
}
REFUSED_VALUES: dict[str, Any] = {
    "modalities": ["text", "audio"],
    "prompt_cache_retention": "24h",
    "service_tier": "flex",
    "store": True,
    "tool_choice": "auto",
    "function_call": {"name": "f"},
    "new_parameter": 1,
}


def request(**fields: Any) -> ChatCompletionRequest:
    return ChatCompletionRequest.model_validate({"model": "footnote", "messages": HONOURED["messages"], **fields})


def errors(**fields: Any) -> list[Any]:
    with pytest.raises(ValidationError) as raised:
        request(**fields)
    return list(raised.value.errors())


def test_every_parameter_of_the_reference_is_decided_on():
    parameters = {
        name
        for params in (reference.CompletionCreateParamsNonStreaming, reference.CompletionCreateParamsStreaming)
        for name in typing.get_type_hints(params)
    }

    assert parameters == set(HONOURED) | set(WITHOUT_EFFECT) | set(REFUSED)
    assert set(HONOURED) | set(WITHOUT_EFFECT) <= set(ChatCompletionRequest.model_fields)


@pytest.mark.parametrize("name", [*HONOURED, *WITHOUT_EFFECT])
def test_what_is_honoured_or_changes_nothing_is_taken(name):
    fields = {name: {**HONOURED, **WITHOUT_EFFECT}[name]} | ({"logprobs": True} if name == "top_logprobs" else {})

    assert name in request(**fields).model_fields_set


@pytest.mark.parametrize(
    ("name", "value"), [*REFUSED.items(), *REFUSED_VALUES.items()], ids=lambda value: str(value)[:24]
)
def test_what_is_not_honoured_is_refused_by_name(name, value):
    error = errors(**{name: value})[0]

    if name == "new_parameter":
        assert (error["type"], error["loc"]) == ("extra_forbidden", (name,))
    else:
        assert (error["type"], error["ctx"]["param"]) == (UNSUPPORTED, name)
        assert name in error["msg"]


@pytest.mark.parametrize("name", [*WITHOUT_EFFECT, *REFUSED])
def test_any_parameter_may_be_null(name):
    request(**{name: None})


@pytest.mark.parametrize("functions", [{"functions": [{"name": "f"}], "function_call": "none"}, {"tools": []}])
def test_tools_that_may_not_be_called_are_taken(functions):
    request(**functions)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "tool", "content": "x", "tool_call_id": "1"}, "role"),
        ({"role": "function", "content": "x", "name": "f"}, "role"),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, "tool_calls"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "content.0.type"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "content.0.type"),
        (
            {"role": "user", "content": [{"type": "text", "text": "x", "prompt_cache_breakpoint": {}}]},
            "content.0.prompt_cache_breakpoint",
        ),
    ],
)
def test_messages_that_are_no_text_are_refused_by_name(message, param):
    error = errors(messages=[message, *HONOURED["messages"]])[0]

    assert (error["type"], error["loc"], error["ctx"]["param"]) == (UNSUPPORTED, ("messages", 0), param)
    assert "supported" in error["msg"]


def test_the_message_of_a_completion_can_be_sent_back():
    said = {"role": "assistant", "content": "Forty. [1]", "refusal": None, "annotations": [{"type": "file_citation"}]}
    parts = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}, {"type": "text", "text": "Well."}]}
    silent: dict[str, Any] = {"role": "assistant", "content": None, "refusal": "No.", "tool_calls": [], "audio": None}

    texts = [message.text for message in request(messages=[said, parts, silent, *HONOURED["messages"]]).messages]

    assert texts == ["Forty. [1]", "No.Well.", "No.", "How many ships?"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 0},
        {"n": 9},
        {"top_logprobs": 2},
        {"logprobs": True, "top_logprobs": 21},
        {"logit_bias": {"x": 1}},
        {"logit_bias": {"5": 101}},
        {"presence_penalty": 2.5},
        {"stop": ["a", "b", "c", "d", "e"]},
        {"messages": [{"role": "user", "content": None}]},
        {"metadata": {"a": "b" * 513}},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_values_out_of_range_are_refused(wrong):
    assert all(error["type"] != UNSUPPORTED for error in errors(**wrong))
