"""OpenAI's own client against /v1/embeddings."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from pydantic import ValidationError
from tokenizers import Tokenizer

from app.api.openai.schemas.embeddings import EmbeddingRequest
from app.api.openai.text_embedding import TextEmbedding, text_of
from app.errors import DeadlinePassed, UnsupportedParameter
from app.types import Principal, Role
from retrieval.ports import Vectors
from tests.app.api.openai.openai_server import Service
from tests.ingestion.small_tokenizer import word_piece
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY

TEXTS = ["forty ships in the harbour", "a mill at the river", "rye"]
CALLER = Principal("default", "ann", "key_1", Role.READER)


@pytest.fixture
def client(openai_service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


class Tokenized(HashingEmbedder):
    """An embedder whose tokenizer can be had."""

    @property
    def tokenizer(self) -> Tokenizer:
        return word_piece()


class Counting(HashingEmbedder):
    """Says when it embeds documents."""

    def __init__(self, then: Any) -> None:
        super().__init__(max_tokens=9000)
        self._then = then

    def embed_documents(self, texts: Sequence[str], **_: Any) -> Vectors:
        self._then()
        return super().embed_documents(texts)


def test_vectors_are_those_of_the_embedder_in_either_encoding(client):
    expected = HashingEmbedder(max_tokens=64).embed_documents(TEXTS)
    packed = client.embeddings.create(model="footnote", input=TEXTS)  # base64, as the client asks by default
    plain = client.embeddings.create(model="hashing", input=TEXTS, encoding_format="float")

    for answer in (packed, plain):
        assert [item.index for item in answer.data] == [0, 1, 2]
        np.testing.assert_allclose(np.array([item.embedding for item in answer.data]), expected, atol=1e-7)
        assert answer.model == "hashing"


def test_reported_usage_equals_the_ledger_row(openai_service, client):
    raw = client.embeddings.with_raw_response.create(model="footnote", input=TEXTS)
    tokens = sum(HashingEmbedder().count_tokens(text) for text in TEXTS)
    [row] = openai_service.state.usage.ledger.usage(raw.headers["x-request-id"])

    assert raw.parse().usage.prompt_tokens == tokens == row.input_tokens
    assert (row.operation, row.status) == ("embed_doc", "completed")


def test_questions_are_embedded_as_questions_where_that_is_asked(openai_service, client):
    body = {"footnote": {"input_type": "query"}}
    raw = client.embeddings.with_raw_response.create(model="footnote", input="rye", extra_body=body)

    assert [row.operation for row in openai_service.state.usage.ledger.usage(raw.headers["x-request-id"])] == [
        "embed_query"
    ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ["rye", "x " * 63]}, "input.1"),
        ({"input": ["rye", " "]}, "input.1"),
        ({"input": "rye", "dimensions": 8}, "dimensions"),
        ({"input": [1, 2, 3]}, "input"),
    ],
    ids=["too long", "empty", "dimensions", "token ids"],
)
def test_what_cannot_be_embedded_whole_is_a_400_that_names_it(client, fields, param):
    with pytest.raises(openai.BadRequestError) as raised:
        client.embeddings.create(model="footnote", **fields)

    assert raised.value.param == param


def test_the_longest_text_and_the_models_own_dimensions_are_taken(client):
    assert len(client.embeddings.create(model="hashing", input="x " * 62, dimensions=64).data) == 1


def test_another_model_and_too_many_inputs_are_refused(client):
    with pytest.raises(openai.NotFoundError, match="hashing"):
        client.embeddings.create(model="text-embedding-3-small", input="rye")
    with pytest.raises(openai.UnprocessableEntityError):
        client.embeddings.create(model="footnote", input=["rye"] * 2049)


@pytest.mark.parametrize("special", [True, False])
def test_token_ids_of_the_embedder_are_its_text(special):
    embedder, tokenizer = Tokenized(max_tokens=64), word_piece()
    ids = tokenizer.encode("revenue rose", add_special_tokens=special).ids

    text = text_of(ids, embedder, place=0)

    assert tokenizer.encode(text).ids == tokenizer.encode("revenue rose").ids


@pytest.mark.parametrize("ids", [[10**9], [0, 0, 0]])
def test_token_ids_of_another_model_are_refused(ids):
    with pytest.raises(UnsupportedParameter, match=r"input\[3\]"):
        text_of(ids, Tokenized(max_tokens=64), place=3)


@pytest.mark.parametrize("leaves", [True, False], ids=["left", "late"])
def test_what_was_read_is_billed_where_nobody_waits_any_more(state, leaves):
    embedding: list[TextEmbedding] = []
    embedder = Counting(lambda: embedding[0].abandon() if leaves else None)
    deadline = float("inf") if leaves else float("-inf")
    embedding.append(
        TextEmbedding(embedder, state.usage.ledger, request_id="req_1", principal=CALLER, deadline=deadline)
    )

    with pytest.raises(DeadlinePassed):
        embedding[0].run(["x " * 6000, "y " * 6000], input_type="document")

    [row] = state.usage.ledger.usage("req_1")
    assert row.input_tokens == (6002 if leaves else 0)
    assert row.status == ("client_abort" if leaves else "server_abort")


class Uncounted(HashingEmbedder):
    """An embedder whose tokenizer must not be used."""

    def count_tokens(self, text: str) -> int:
        pytest.fail("a text that is too long was tokenized")


def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(state):
    embedding = TextEmbedding(
        Uncounted(max_tokens=256), state.usage.ledger, request_id="req_1", principal=CALLER, deadline=math.inf
    )

    with pytest.raises(UnsupportedParameter, match=r"input\[0\] has 20000 characters") as refused:
        embedding.run(["a" * 20_000], input_type="document")
    assert refused.value.param == "input.0"


def test_more_token_ids_than_the_model_reads_are_refused_before_they_are_decoded():
    with pytest.raises(UnsupportedParameter, match="65 tokens, and hashing reads 64"):
        text_of([1] * 65, Tokenized(max_tokens=64), place=0)


def test_more_token_ids_than_a_request_may_have_are_refused(openai_service):
    refused = post(openai_service, [[1] * 8_192] * 37)

    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "input: 303104 tokens are more than 300000 in one request."


@pytest.mark.parametrize(
    "wrong",
    [["a"] * 2_049, [1] * 8_193, ["a", *[1] * 250_000], [[-1] * 8_192] * 20, [["a"] * 100] * 2_000, "a" * 131_073],
    ids=["texts", "ids", "both", "negative", "words as ids", "a long text"],
)
def test_a_body_of_mistakes_costs_little_and_its_answer_is_small(openai_service, wrong):
    refused = post(openai_service, wrong)

    assert refused.status_code == 422
    assert len(refused.content) <= 16 * 1024
    began = time.process_time()
    with pytest.raises(ValidationError) as errors:
        EmbeddingRequest.model_validate({"model": "footnote", "input": wrong})
    assert errors.value.error_count() <= 8
    assert time.process_time() - began < 0.5


def post(service: Service, given: object) -> httpx.Response:
    return httpx.post(
        f"{service.url}/v1/embeddings",
        json={"model": "footnote", "input": given},
        headers={"Authorization": f"Bearer {ADMIN_KEY}"},
        timeout=60,
    )
