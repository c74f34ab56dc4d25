"""Every parameter of OpenAI's Responses API is honoured, accepted as one that changes nothing, or refused by name."""

import typing
from typing import Any

import pytest
from openai.types.responses import file_search_tool_param, response_create_params
from openai.types.responses.response_includable import ResponseIncludable
from pydantic import ValidationError

from app.api.openai.schemas.response_input import FileSearchTool, ResponseRanking
from app.api.openai.schemas.responses import ResponseRequest
from app.api.schemas.unsupported import UNSUPPORTED

TOOL: dict[str, Any] = {"type": "file_search", "vector_store_ids": ["col_1"]}
HONOURED: dict[str, Any] = {
    "conversation": {"id": "conv_1"},
    "include": ["file_search_call.results", "message.output_text.logprobs"],
    "input": "How many ships?",
    "instructions": "Be brief.",
    "max_output_tokens": 5,
    "metadata": {"team": "blue"},
    "model": "footnote",
    "previous_response_id": "req_1",
    "store": True,
    "stream": False,
    "stream_options": {"include_obfuscation": True},
    "temperature": 0.5,
    "text": {"format": {"type": "json_schema", "name": "ships", "schema": {"type": "object"}, "strict": True}},
    "tool_choice": "auto",
    "tools": [TOOL],
    "top_logprobs": 3,
    "top_p": 0.5,
}
WITHOUT_EFFECT: dict[str, Any] = {
    "background": False,
    "max_tool_calls": 1,
    "parallel_tool_calls": True,
    "prompt_cache_key": "k",
    "prompt_cache_retention": "in_memory",
    "safety_identifier": "s",
    "service_tier": "auto",
    "truncation": "disabled",
    "user": "u",
}
REFUSED: dict[str, Any] = {
    "access_programs": {"cyber": "standard"},
    "context_management": [{"type": "compaction"}],
    "image": {"context_compression": "auto"},
    "moderation": {"model": "m"},
    "prompt": {"id": "p"},
    "prompt_cache_options": {"mode": "explicit"},
    "reasoning": {"effort": "low"},
}
REFUSED_VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "background": ({"background": True}, "background"),
    "cache": ({"prompt_cache_retention": "24h"}, "prompt_cache_retention"),
    "tier": ({"service_tier": "flex"}, "service_tier"),
    "store": ({"store": False, "previous_response_id": "req_1"}, "store"),
    "truncation": ({"truncation": "auto"}, "truncation"),
    "verbosity": ({"text": {"verbosity": "low"}}, "text.verbosity"),
    "function": ({"tools": [{"type": "function", "name": "f", "parameters": {}}]}, "tools.0.type"),
    "web search": ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
    "weights": (
        {"tools": [{**TOOL, "ranking_options": {"hybrid_search": {"embedding_weight": 1, "text_weight": 1}}}]},
        "tools.0.ranking_options.hybrid_search",
    ),
    "choice of a function": ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
    "no search": ({"tools": [TOOL], "tool_choice": "none"}, "tool_choice"),
    "encrypted reasoning": ({"include": ["reasoning.encrypted_content"]}, "include.0"),
    "image": (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        "input.0.content.0.type",
    ),
    "file": (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}]},
        "input.0.content.0.type",
    ),
    "function's output": (
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
        "input.0.type",
    ),
    "reference": ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0.type"),
    "breakpoint": (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {}}]}]},
        "input.0.content.0.prompt_cache_breakpoint",
    ),
}


def request(**fields: Any) -> ResponseRequest:
    return ResponseRequest.model_validate({"model": "footnote", "input": HONOURED["input"], **fields})


def errors(**fields: Any) -> list[Any]:
    with pytest.raises(ValidationError) as raised:
        request(**fields)
    return list(raised.value.errors())


def test_every_parameter_of_the_reference_is_decided_on():
    parameters = {
        name
        for params in (
            response_create_params.ResponseCreateParamsNonStreaming,
            response_create_params.ResponseCreateParamsStreaming,
        )
        for name in typing.get_type_hints(params)
    }

    assert parameters == set(HONOURED) | set(WITHOUT_EFFECT) | set(REFUSED)
    assert set(HONOURED) | set(WITHOUT_EFFECT) <= set(ResponseRequest.model_fields)


def test_every_option_of_the_file_search_is_decided_on():
    assert set(typing.get_type_hints(file_search_tool_param.FileSearchToolParam)) == set(FileSearchTool.model_fields)
    options = set(typing.get_type_hints(file_search_tool_param.RankingOptions))
    assert options == set(ResponseRanking.model_fields) | {"hybrid_search"}


@pytest.mark.parametrize("name", typing.get_args(ResponseIncludable))
def test_what_can_be_included_is_included_or_refused_by_name(name):
    if name in HONOURED["include"]:
        assert request(include=[name]).includes(name)
    else:
        assert errors(include=["file_search_call.results", name])[0]["ctx"]["param"] == "include.1"


@pytest.mark.parametrize("name", [*HONOURED, *WITHOUT_EFFECT])
def test_what_is_honoured_or_changes_nothing_is_taken(name):
    assert name in request(**{name: {**HONOURED, **WITHOUT_EFFECT}[name]}).model_fields_set


@pytest.mark.parametrize("name", [*REFUSED, "new_parameter"])
def test_what_is_not_honoured_is_refused_by_name(name):
    error = errors(**{name: REFUSED.get(name, 1)})[0]

    if name == "new_parameter":
        assert (error["type"], error["loc"]) == ("extra_forbidden", (name,))
    else:
        assert (error["type"], error["ctx"]["param"]) == (UNSUPPORTED, name)
        assert name in error["msg"]


@pytest.mark.parametrize("case", REFUSED_VALUES)
def test_values_that_are_not_honoured_are_refused_by_name(case):
    fields, param = REFUSED_VALUES[case]
    error = errors(**fields)[0]

    assert error["type"] == UNSUPPORTED
    assert ".".join([*map(str, error["loc"]), error["ctx"]["param"]]) == param


@pytest.mark.parametrize("name", [*WITHOUT_EFFECT, *REFUSED])
def test_any_parameter_may_be_null(name):
    request(**{name: None})


def test_the_output_of_a_response_can_be_sent_back():
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Forty.[1]", "annotations": [{"type": "file_citation"}], "logprobs": []},
            {"type": "refusal", "refusal": " No."},
        ],
    }
    search = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["ships"], "results": None}
    asked = {"role": "user", "content": [{"type": "input_text", "text": "And boats?"}]}

    messages = request(input=[{"role": "user", "content": "Ships?"}, search, said, asked]).messages

    assert [(one.role, one.text) for one in messages] == [
        ("user", "Ships?"),
        ("assistant", "Forty.[1] No."),
        ("user", "And boats?"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"input": []},
        {"input": [{"role": "user"}]},
        {"input": [{"content": "x"}]},
        {"input": [{"role": "tool", "content": "x"}]},
        {"previous_response_id": "req_1", "conversation": "conv_1"},
        {"conversation": "conv_1", "input": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
        {"conversation": "conv_1", "input": [{"role": "system", "content": "a"}]},
        {"conversation": {"name": "conv_1"}},
        {"max_output_tokens": 0},
        {"top_logprobs": 21},
        {"metadata": {"a": "b" * 513}},
        {"metadata": {"a" * 65: "b"}},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "file_search"}},
        {"tools": [TOOL, TOOL]},
        {"tools": [{"type": "file_search"}]},
        {"tools": [{**TOOL, "max_num_results": 51}]},
        {"tools": [{**TOOL, "ranking_options": {"ranker": "mine"}}]},
        {"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}},
        {"input": [{"role": "user", "content": "a" * 70_000}], "instructions": "b" * 70_000},
    ],
    ids=lambda wrong: str(wrong)[:48],
)
def test_values_out_of_range_are_refused(wrong):
    assert all(error["type"] != UNSUPPORTED for error in errors(**wrong))


@pytest.mark.parametrize(
    ("fields", "keeps"),
    [
        ({}, False),
        ({"store": None}, False),
        ({"store": False}, False),
        ({"store": True}, True),
        ({"previous_response_id": "req_1"}, True),
        ({"conversation": "conv_1"}, True),
    ],
    ids=str,
)
def test_a_response_is_stored_where_that_is_asked_or_it_continues_something(fields, keeps):
    assert request(**fields).keeps is keeps
