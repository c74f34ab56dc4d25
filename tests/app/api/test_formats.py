"""POST /v1/ask in plain text and in JSON, streamed and whole, from a model that writes Markdown."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.answering.formats.answer_formats import answer_schema
from generation.types import JsonSchema
from tests.app.api.openai.test_response_format import SCHEMA, Service, serve
from tests.app.api.test_extractive import events

__all__ = ["serve"]  # a fixture

MARKDOWN = (
    "## Result\n\n**Northwind's revenue** rose *12 percent* to `48 million dollars` in 2025 [1].\n"
    "* See [the report](r.pdf)."
)
PLAIN = "Result\n\nNorthwind's revenue rose 12 percent to 48 million dollars in 2025[1].\n- See the report."
DOCUMENT = '{"answer": "**Revenue** rose [1].", "sources": [1]}'


@pytest.mark.parametrize(("form", "says"), [("text", MARKDOWN), ("markdown", MARKDOWN), ("json", DOCUMENT)])
def test_streamed_and_whole_answers_are_equal(serve: Callable[..., Service], form: str, says: str) -> None:
    service = serve(says=says)
    whole = service.answer(format=form).json()
    streamed = events(service.answer(format=form, stream=True).text)

    deltas = [data for name, data in streamed if name == "delta"]
    assert "".join(data["text"] for data in deltas) == whole["answer"]
    assert deltas[0]["part"] == 0, "a model writes it"
    assert {data["part"] for data in deltas[1:]} <= {0, None}
    ((part),) = whole["parts"]
    assert (part["kind"], part["start"], part["end"]) == (
        "json" if form == "json" else "prose",
        0,
        len(whole["answer"]),
    )
    assert part["citations"] == list(range(len(whole["citations"])))
    assert [data for name, data in streamed if name == "citation"] == whole["citations"]


def test_plain_text_has_no_marks_and_its_footnotes_point_into_it(serve: Callable[..., Service]) -> None:
    body = serve(says=MARKDOWN).answer(format="text").json()

    assert "".join(body["answer"].split()) == "".join(PLAIN.split())
    (citation,) = [found for found in body["citations"] if found["origin"] == "model"]
    assert body["answer"][citation["answer_start"] : citation["answer_end"]] == "[1]"


def test_json_is_the_models_text_verbatim_under_a_schema_of_the_presented_sources(
    serve: Callable[..., Service],
) -> None:
    service = serve(says=DOCUMENT)
    body = service.answer(format="json").json()
    (request,) = service.engine.requests

    assert body["answer"] == DOCUMENT
    assert request.constraint == JsonSchema(answer_schema(len(body["sources"]["presented"])))


def test_a_schema_of_ones_own_reaches_the_engine(serve: Callable[..., Service]) -> None:
    service = serve(says='{"claim": "x"}')
    service.answer(format="json", json_schema=SCHEMA)
    (request,) = service.engine.requests

    assert isinstance(request.constraint, JsonSchema)
    assert json.loads(request.constraint.schema) == SCHEMA


@pytest.mark.parametrize(
    "fields",
    [
        {"json_schema": SCHEMA},
        {"format": "text", "json_schema": SCHEMA},
        {"format": "html"},
        {"format": "json", "json_schema": {"type": "wrong"}},
    ],
)
def test_a_format_that_cannot_be_had_is_refused(serve: Callable[..., Service], fields: dict[str, Any]) -> None:
    service = serve()

    assert service.answer(**fields).status_code == 422
    assert service.engine.requests == []


def test_without_evidence_json_by_default_is_still_json(serve: Callable[..., Service]) -> None:
    body = serve(found=False).answer(format="json").json()

    assert not body["answered"]
    assert json.loads(body["answer"])["sources"] == []
