"""app.answering.quoting.quotable: which questions quotes can answer."""

from dataclasses import replace
from typing import Any

import pytest

from app.answering.formats.answer_formats import ANSWER_SCHEMA, ANY_OBJECT
from app.answering.question import Question
from app.answering.quoting.quotable import require_quotable
from app.errors import InvalidRequest, UnsupportedParameter
from app.types import Principal, Role
from generation.types import SamplingParams
from retrieval.types import Scope

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="Why?",
    scope=Scope(tenant_id="t"),
)


@pytest.mark.parametrize(
    "fields",
    [{}, {"format": "text"}, {"format": "json", "json_schema": ANSWER_SCHEMA}, {"json_schema": ANY_OBJECT}],
    ids=["prose", "text", "the default schema", "any object"],
)
def test_quotes_answer_prose_and_json_that_asks_for_no_more(fields: dict[str, Any]) -> None:
    require_quotable(replace(QUESTION, **fields))


@pytest.mark.parametrize(
    ("fields", "error", "param"),
    [
        ({"on_no_evidence": "answer"}, InvalidRequest, "on_no_evidence"),
        ({"sampling": SamplingParams(max_tokens=1, logprobs=2)}, UnsupportedParameter, "logprobs"),
        ({"json_schema": '{"type": "string"}'}, InvalidRequest, "json_schema"),
        ({"json_schema": '{"type": "string"}', "endpoint": "chat.completions"}, InvalidRequest, "response_format"),
        ({"json_schema": '{"type": "string"}', "endpoint": "responses"}, InvalidRequest, "text.format"),
        (
            {"sampling": SamplingParams(max_tokens=1, logprobs=2), "endpoint": "responses"},
            UnsupportedParameter,
            "include",
        ),
    ],
)
def test_what_quotes_cannot_answer_is_named(fields: dict[str, Any], error: type[Exception], param: str) -> None:
    with pytest.raises(error) as refusal:
        require_quotable(replace(QUESTION, **fields))
    assert getattr(refusal.value, "param", None) == param
