"""The use case of the embeddings endpoint: texts are checked, reserved on the ledger, embedded and settled."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.answering.metering.call_kinds import CallNumber
from app.errors import DeadlinePassed, UnsupportedParameter
from app.types import Operation, Principal, Reservation, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import ChunkingEmbedder, Embedder, Vectors

InputType = Literal["document", "query"]
_TOKEN_CHARS = 64  # characters of a token, at most, on average over a text
_PART_TOKENS = 8192  # after each such part, abandonment and deadline are checked

MAX_TOKENS = 300_000
"""Most tokens of all texts of a request together, as at OpenAI."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """`(n, dim)` float32 unit rows, and the tokens the embedder read for them."""

    vectors: Vectors
    tokens: int


class TextEmbedding:
    """Embeds the texts of one request. Call `run` once, in a worker thread; call `abandon` from any thread.

    >>> embedded = TextEmbedding(
    ...     embedder, ledger, request_id="req_1", principal=principal, deadline=time.monotonic() + 60
    ... ).run(["first", "second"], input_type="document")
    """

    def __init__(
        self, embedder: Embedder, ledger: Ledger, *, request_id: str, principal: Principal, deadline: float
    ) -> None:
        """`deadline` is the `time.monotonic` second by which it must be finished."""
        self._embedder = embedder
        self._ledger = ledger
        self._request_id = request_id
        self._principal = principal
        self._deadline = deadline
        self._abandoned = threading.Event()

    def abandon(self) -> None:
        """Stop after the current part: the client has left."""
        self._abandoned.set()

    def run(self, texts: Sequence[str], *, input_type: InputType) -> Embedded:
        """Embed `texts`, each whole.

        Raises:
            UnsupportedParameter: A text is empty or longer than the model reads, or there are too many tokens in all.
            DeadlinePassed: The deadline passed, or the client left; the tokens read so far are billed.
            BudgetExceeded, StoreUnavailable: Nothing was embedded.
        """
        info = self._embedder.info
        counted = [self._count(text, place, input_type) for place, text in enumerate(texts)]
        parts = list(_parts(counted))
        tokens = [self._tokens(texts[part], counted[part], input_type) for part in parts]
        total = sum(tokens)
        if total > MAX_TOKENS:
            raise too_many_tokens(total)
        reservation = Reservation(
            event_id=f"{self._request_id}:{CallNumber.EMBED_QUERY}",
            request_id=self._request_id,
            operation=Operation.EMBED_QUERY if input_type == "query" else Operation.EMBED_DOC,
            principal=self._principal,
            endpoint="embeddings",
            model=info.model,
            tokenizer_revision=info.revision,
            input_tokens=total,
        )
        vectors = []
        with self._ledger.metered(reservation) as call:
            call.input_tokens = 0
            for part, part_tokens in zip(parts, tokens, strict=True):
                if self._abandoned.is_set() or time.monotonic() >= self._deadline:
                    abandoned = self._abandoned.is_set()
                    call.status_on_error = UsageStatus.CLIENT_ABORT if abandoned else UsageStatus.SERVER_ABORT
                    raise DeadlinePassed
                vectors.append(self._vectors(texts[part], input_type))
                call.input_tokens += part_tokens
        return Embedded(np.concatenate(vectors), total)

    def _count(self, text: str, place: int, input_type: InputType) -> int:
        """Tokens of one text, as the model reads it."""
        if not text.strip():
            raise UnsupportedParameter(f"input[{place}] is empty.", param=f"input.{place}")
        info = self._embedder.info
        if len(text) > info.max_tokens * _TOKEN_CHARS:  # counting its tokens would take long
            raise UnsupportedParameter(
                f"input[{place}] has {len(text)} characters, and {info.model} reads {info.max_tokens} tokens at most.",
                param=f"input.{place}",
            )
        tokens = self._embedder.count_tokens(text)
        if tokens > info.max_tokens:
            raise UnsupportedParameter(
                f"input[{place}] has {tokens} tokens, and {info.model} reads {info.max_tokens} of them at most.",
                param=f"input.{place}",
            )
        return self._embedder.count_query(text) if input_type == "query" else tokens

    def _vectors(self, texts: Sequence[str], input_type: InputType) -> Vectors:
        if input_type == "document":
            return self._embedder.embed_documents(texts)
        return np.stack([self._embedder.embed_query(text) for text in texts])

    def _tokens(self, texts: Sequence[str], counted: Sequence[int], input_type: InputType) -> int:
        return sum(counted) if input_type == "query" else self._embedder.count_documents(texts, counted=counted)


def _parts(counted: Sequence[int]) -> Iterator[slice]:
    """Slices of neighbouring texts with about `_PART_TOKENS` tokens each; `counted` are the tokens of each text."""
    start, tokens = 0, 0
    for place, count in enumerate(counted):
        if place > start and tokens + count > _PART_TOKENS:
            yield slice(start, place)
            start, tokens = place, 0
        tokens += count
    yield slice(start, len(counted))


def too_many_tokens(total: int) -> UnsupportedParameter:
    """The error for a request with more than `MAX_TOKENS`."""
    return UnsupportedParameter(f"input: {total} tokens are more than {MAX_TOKENS} in one request.", param="input")


def text_of(token_ids: Sequence[int], embedder: Embedder, *, place: int) -> str:
    """The text that these token ids of the embedder encode.

    A tokenizer encodes a text in one way. Ids that differ from the encoding of their text belong to another model, and
    are refused: their text would be another one.

    Raises:
        UnsupportedParameter: The embedder gives no access to its tokenizer, there are more ids than it reads, or they
            are not its encoding of a text.
    """
    if not isinstance(embedder, ChunkingEmbedder):
        raise UnsupportedParameter("input: token ids are not supported by this embedder; send text.", param="input")
    info, tokenizer, ids = embedder.info, embedder.tokenizer, list(token_ids)
    if len(ids) > info.max_tokens:
        raise UnsupportedParameter(
            f"input[{place}] has {len(ids)} tokens, and {info.model} reads {info.max_tokens} of them at most.",
            param=f"input.{place}",
        )
    known = max(ids) < tokenizer.get_vocab_size()
    text = tokenizer.decode(ids, skip_special_tokens=True) if known else ""
    if text and ids in (tokenizer.encode(text).ids, tokenizer.encode(text, add_special_tokens=False).ids):
        return str(text)
    raise UnsupportedParameter(
        f"input[{place}] are no token ids of {info.model}, perhaps another model's; send text.",
        param=f"input.{place}",
    )
