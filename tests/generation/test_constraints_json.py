"""Under a JSON schema the output is one document that satisfies it, then ends."""

import json
import random
import time
from contextlib import suppress
from functools import cache
from typing import Any

import jsonschema
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.constraints import ConstraintCompiler, TokenConstraint
from generation.errors import ConstraintInvalid
from generation.json_grammar import MAX_SCHEMA_BYTES
from generation.tokenizer import ChatTokenizer
from generation.types import JsonSchema
from tests.examples import examples
from tests.generation.test_default_model import MODEL
from tests.generation.tiny import VOCAB, tiny_tokenizer


@cache
def tiny() -> tuple[ChatTokenizer, ConstraintCompiler]:
    tokenizer = ChatTokenizer(tiny_tokenizer())
    return tokenizer, ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=tokenizer.vocab_size)


def compiled(schema: object) -> TokenConstraint:
    return tiny()[1].compile(JsonSchema(json.dumps(schema)))


def allowed(constraint: TokenConstraint) -> list[int]:
    mask = constraint.mask()
    assert mask is not None
    ids: list[int] = mask.nonzero()[:, 0].tolist()
    return ids


def accepts(schema: object, text: str) -> bool:
    """Whether `text` can be the whole output."""
    tokenizer, _ = tiny()
    constraint = compiled(schema)
    for token in tokenizer.encode(text):
        if not constraint.allows(token):
            return False
        constraint.advance(token)
    return all(constraint.allows(token) for token in tokenizer.eos_ids)


def random_document(
    tokenizer: ChatTokenizer, constraint: TokenConstraint, *, eos_ids: frozenset[int], draw: random.Random
) -> str | None:
    """What a walk under the mask writes, hurried towards its end; None if it does not end in time."""
    closing = [*(token for text in ('"', "}", "]", ",", ":") for token in tokenizer.encode(text)), *sorted(eos_ids)]
    ids: list[int] = []
    for at in range(400):
        mask = constraint.mask()
        assert mask is not None
        ends, choices = [token for token in closing if mask[token]], mask.nonzero()[:, 0]
        hurry = ends and draw.random() < 0.3 + at / 400
        token = draw.choice(ends) if hurry else int(choices[draw.randrange(len(choices))])
        constraint.advance(token)
        if token in eos_ids:
            return tokenizer.decode(ids)
        ids.append(token)
    return None


REVENUE = {
    "type": "object",
    "properties": {"revenue": {"type": "integer", "minimum": 3}, "unit": {"enum": ["EUR", "USD"]}},
    "required": ["revenue", "unit"],
    "additionalProperties": False,
}
LEAVES: list[dict[str, Any]] = [
    {"type": "integer", "minimum": -5, "maximum": 120},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"type": "string", "minLength": 2, "maxLength": 6},
    {"type": "string", "pattern": "^[a-c]{2,4}[0-9]$"},
    {"type": "string", "pattern": "b"},
    {"type": "boolean"},
    {"type": "null"},
    {"enum": ["é", 'a"b', "x/y", 7, None, [1], {"k": 2}]},
    {"const": {"a": [1, "\n"]}},
    {"type": ["integer", "null"]},
    {"type": "string", "format": "date"},
]


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = ["a", "b/c", "é", 'q"', "minimum"]

    def of(properties: dict[str, Any], required: set[str], closed: bool) -> dict[str, Any]:
        wanted = sorted(required & set(properties))
        closing = {"additionalProperties": False} if closed else {}
        return {"type": "object", "properties": properties, "required": wanted} | closing

    objects = st.builds(
        of, st.dictionaries(st.sampled_from(names), inner, max_size=3), st.sets(st.sampled_from(names)), st.booleans()
    )
    arrays = st.builds(
        lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
        inner,
        st.integers(0, 2),
        st.integers(0, 2),
    )
    return objects | arrays | st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3))


schemas = st.recursive(st.sampled_from(LEAVES), _objects, max_leaves=5)


@settings(max_examples=examples(120), deadline=None)
@given(schema=schemas, seed=st.integers(0, 2**32))
def test_a_finished_walk_is_a_document_that_satisfies_the_schema(schema: dict[str, Any], seed: int) -> None:
    tokenizer, _ = tiny()
    text = random_document(tokenizer, compiled(schema), eos_ids=tokenizer.eos_ids, draw=random.Random(seed))

    if text is not None:
        jsonschema.validate(json.loads(text), schema)


def test_most_walks_finish() -> None:
    tokenizer, _ = tiny()
    texts = [
        random_document(tokenizer, compiled(REVENUE), eos_ids=tokenizer.eos_ids, draw=random.Random(seed))
        for seed in range(20)
    ]
    documents = [json.loads(text) for text in texts if text is not None]

    assert len(documents) >= 15
    for document in documents:
        jsonschema.validate(document, REVENUE)


@pytest.mark.skipif(not MODEL.is_dir(), reason="the default generator is not installed here")
def test_walks_over_the_default_vocabulary_satisfy_the_schema() -> None:
    tokenizer = ChatTokenizer.load(str(MODEL))
    eos_ids = tokenizer.eos_ids | {0}
    compiler = ConstraintCompiler(tokenizer, eos_ids=eos_ids, vocab_size=tokenizer.vocab_size)
    schema = {"type": "object", "properties": {"n": REVENUE, "s": LEAVES[3]}, "required": ["n", "s"]}
    ended = 0
    for seed in range(3):
        constraint = compiler.compile(JsonSchema(json.dumps(schema)))
        text = random_document(tokenizer, constraint, eos_ids=eos_ids, draw=random.Random(seed))
        if text is not None:
            jsonschema.validate(json.loads(text), schema)
            ended += 1

    assert ended


def test_the_end_is_allowed_exactly_when_the_document_is_complete() -> None:
    tokenizer, _ = tiny()
    constraint = compiled(REVENUE)
    for token in tokenizer.encode('{"revenue": 48, "unit": "EUR"}'):
        assert not any(constraint.allows(eos) for eos in tokenizer.eos_ids)
        constraint.advance(token)

    assert allowed(constraint) == sorted(tokenizer.eos_ids)
    constraint.advance(*tokenizer.eos_ids)  # a caller may ignore the end of a sequence
    assert allowed(constraint) == sorted(tokenizer.eos_ids)


def test_every_end_of_sequence_id_may_end_it() -> None:
    tokenizer, _ = tiny()
    eos_ids = frozenset({3, *tokenizer.eos_ids})
    constraint = ConstraintCompiler(tokenizer, eos_ids=eos_ids, vocab_size=tokenizer.vocab_size).compile(
        JsonSchema('{"const": 7}')
    )
    constraint.advance(*tokenizer.encode("7"))

    assert allowed(constraint) == sorted(eos_ids)


@pytest.mark.parametrize("vocab_size", [290, 293, VOCAB])
def test_the_mask_is_as_long_as_the_logits_and_leaves_ids_without_a_token_out(vocab_size: int) -> None:
    tokenizer, _ = tiny()
    constraint = ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=vocab_size).compile(
        JsonSchema('{"type": "string"}')
    )
    constraint.advance(*tokenizer.encode('"'))
    mask = constraint.mask()

    assert mask is not None
    assert mask.dtype == torch.bool
    assert mask.shape == (vocab_size,)
    assert not mask[tokenizer.vocab_size :].any()


def test_no_key_can_be_a_second_spelling_of_another() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b/c": {"type": "integer"}}}

    assert accepts(schema, '{"a": 1, "other": "x"}')
    assert not accepts(schema, '{"a": 1, "a": "x"}')
    assert not accepts(schema, '{"a": 1, "\\u0061": "x"}')
    assert not accepts(schema, '{"b\\/c": "x"}')


def test_space_between_tokens_is_allowed_and_bounded() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}

    assert accepts(schema, "[\n  1,\n  2\n]")
    assert not accepts(schema, "[" + " " * 26 + "1]")
    assert not accepts(schema, " [1]")


def test_a_schema_cannot_loosen_its_own_grammar() -> None:
    assert not accepts({"type": "array", "x-guidance": {"whitespace_pattern": "[a-z]+"}}, "[a]")
    assert not accepts({"type": "array", "x-guidance": {"whitespace_pattern": "[a-z]+", "lenient": True}}, "[a]")


def test_a_clone_looks_ahead_without_moving_the_sequence() -> None:
    tokenizer, _ = tiny()
    constraint = compiled(REVENUE)
    before = allowed(constraint)
    ahead = constraint.clone()
    for token in tokenizer.encode('{"rev'):
        ahead.advance(token)

    assert allowed(constraint) == before != allowed(ahead)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"const": NaN}', "not valid JSON"),
        ('{"maximum": 1e999}', "not valid JSON"),
        ("[" * 20_000, "not valid JSON"),
        ("[1]", "is an object"),
        ('"string"', "is an object"),
        ('{"type": "objekt"}', "objekt"),
        ('{"type": 3}', "cannot be used"),
        ('{"enum": []}', "Unsatisfiable"),
        ('{"uniqueItems": true}', "uniqueItems"),
        ('{"not": {"type": "string"}}', "not"),
        ('{"properties": {"a": {"type": "object", "minProperties": 2}}}', "minProperties"),
        ('{"const": "\\u0001"}', "control character"),
        ('{"type": "string", "pattern": "(?=x)"}', "look-around"),
        ('{"$ref": "https://example.org/schema"}', "example.org"),
        ('{"$ref": "#"}', "cannot be continued"),
        ('{"type": "string", "x": "' + "a" * MAX_SCHEMA_BYTES + '"}', "longer than"),
        (json.dumps({"allOf": [{"anyOf": [{"multipleOf": p} for p in (2, 3, 5, 7)]}] * 12}), "cannot be used"),
    ],
    ids=lambda text: text[:30],
)
def test_a_schema_that_cannot_be_used_is_refused_in_a_sentence(schema: str, says: str) -> None:
    with pytest.raises(ConstraintInvalid, match=says) as refused:
        tiny()[1].compile(JsonSchema(schema))

    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 400


HOSTILE: list[dict[str, Any]] = [
    {"type": "string", "pattern": "(a{1,1000}){1,1000}"},
    {"type": "string", "pattern": "^((a|b)*c(d|e)*){50,90}(.*a.{500})$"},
    {"type": "string", "pattern": "(.*a.{900}){3}"},
    {"anyOf": [{"type": "object", "properties": {f"p{n}": {"type": "integer"}}} for n in range(400)]},
    {"type": "array", "minItems": 100_000, "items": {"type": "array", "minItems": 100_000}},
    {"type": "object", "properties": {f"p{n}": {"type": "integer", "minimum": n} for n in range(500)}},
]


@pytest.mark.parametrize("schema", HOSTILE, ids=lambda schema: str(schema)[:40])
def test_a_hostile_schema_neither_hangs_nor_runs_on_beyond_its_bounds(schema: dict[str, Any]) -> None:
    draw = random.Random(1)
    started = time.monotonic()
    with suppress(ConstraintInvalid):  # at its bounds, in whichever step that is
        constraint = compiled(schema)
        for _ in range(60):
            constraint.advance(draw.choice(allowed(constraint)))

    assert time.monotonic() - started < 15  # seconds on a busy machine; a fraction of one on an idle core


def test_a_model_without_an_end_of_sequence_cannot_be_held_to_a_schema() -> None:
    tokenizer, _ = tiny()
    compiler = ConstraintCompiler(tokenizer, eos_ids=frozenset(), vocab_size=tokenizer.vocab_size)

    with pytest.raises(ConstraintInvalid, match="no token that ends"):
        compiler.compile(JsonSchema("{}"))


def test_a_token_outside_the_grammar_ends_the_sequence_for_good() -> None:
    tokenizer, _ = tiny()
    constraint = compiled(REVENUE)

    with pytest.raises(ConstraintInvalid):
        constraint.advance(*tokenizer.encode("x"))
    with pytest.raises(ConstraintInvalid):
        constraint.mask()
