"""app.answering.formats.answer_formats: a JSON answer satisfies its schema and names presented sources only."""

import json
import random
from functools import cache

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.formats.answer_formats import ANSWER_SCHEMA, answer_schema, json_answer, schema_text
from app.answering.question import Question
from app.errors import InvalidRequest
from app.types import Principal, Role
from generation.constraints import ConstraintCompiler
from generation.tokenizer import ChatTokenizer
from generation.types import CitationMarkers, JsonSchema
from retrieval.types import Scope
from tests.generation.test_constraints_json import random_document
from tests.generation.tiny import tiny_tokenizer


@cache
def tiny() -> tuple[ChatTokenizer, ConstraintCompiler]:
    tokenizer = ChatTokenizer(tiny_tokenizer())
    return tokenizer, ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=tokenizer.vocab_size)


def question(json_schema: str | None) -> Question:
    return Question(
        request_id="req_1",
        endpoint="ask",
        principal=Principal("t1", "u1", "k1", Role.MEMBER),
        text="Why?",
        scope=Scope(tenant_id="t1"),
        json_schema=json_schema,
    )


@settings(deadline=None)
@given(sources=st.integers(0, 12), seed=st.integers(0, 2**32))
def test_whatever_a_model_writes_is_valid_and_names_presented_sources_only(sources: int, seed: int) -> None:
    tokenizer, compiler = tiny()
    asked = question(ANSWER_SCHEMA).constraint(sources)
    assert asked == JsonSchema(answer_schema(sources))
    draw = random.Random(seed)
    text = random_document(tokenizer, compiler.compile(asked), eos_ids=tokenizer.eos_ids, draw=draw)

    if text is not None:  # a walk that never ends is cut by the token limit, and says so
        document = json.loads(text)
        jsonschema.validate(document, json.loads(ANSWER_SCHEMA))
        jsonschema.validate(document, json.loads(answer_schema(sources)))
        assert set(document["sources"]) <= set(range(1, sources + 1))
        assert len(document["sources"]) <= sources


def test_a_schema_of_ones_own_is_handed_on_as_it_is() -> None:
    assert question('{"type": "string"}').constraint(3) == JsonSchema('{"type": "string"}')


def test_prose_is_held_to_presented_sources() -> None:
    assert question(None).constraint(3) == CitationMarkers(3)
    assert question(None).constraint(0) is None


@given(answer=st.text(), numbers=st.lists(st.integers(1, 5), max_size=5))
def test_a_document_made_without_a_model_satisfies_the_schema(answer: str, numbers: list[int]) -> None:
    text, places = json_answer(answer, numbers)
    document = json.loads(text)

    jsonschema.validate(document, json.loads(ANSWER_SCHEMA))
    assert document == {"answer": answer, "sources": numbers}
    assert [text[place.start_char : place.end_char] for place in places] == [str(number) for number in numbers]
    assert text == json.dumps(document, ensure_ascii=False)


def test_a_schema_that_is_no_unicode_text_is_refused_by_name() -> None:
    assert json.loads(schema_text({"const": "売上"}, param="p")) == {"const": "売上"}
    with pytest.raises(InvalidRequest) as refused:
        schema_text({"const": "\ud800"}, param="p")
    assert refused.value.param == "p"
