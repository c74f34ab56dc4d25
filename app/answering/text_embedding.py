"""The use case of embedding texts for somebody else: checked, written down, computed, settled."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np

from app.answering.calls import CallNumber
from app.errors import DeadlinePassed, UnsupportedParameter
from app.types import Operation, Principal, Reservation, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder, Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

InputType = Literal["document", "query"]
_PART_TOKENS = 8192  # after which it is looked at whether anybody still waits

MAX_TOKENS = 300_000
"""Of all texts of a request together, as at OpenAI."""


@runtime_checkable
class Tokenizing(Protocol):
    """An embedder whose tokenizer can be had."""

    @property
    def tokenizer(self) -> "Tokenizer":
        """Without truncation and padding."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """`(n, dim)` float32 unit rows, and the tokens the embedder read for them."""

    vectors: Vectors
    tokens: int


class TextEmbedding:
    """One request's embedding. `run` once, in a worker thread; `abandon` from any, when nobody waits any more."""

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
        """Stop after the texts that are being read."""
        self._abandoned.set()

    def run(self, texts: Sequence[str], *, input_type: InputType) -> Embedded:
        """Embed `texts`, each whole.

        Raises:
            UnsupportedParameter: One of them is empty or longer than the model reads, or all together are too many.
            DeadlinePassed: They were not done in time, or nobody waits for them any more; what was read is billed.
            BudgetExceeded, StoreUnavailable: Nothing was read.
        """
        info = self._embedder.info
        counted = [self._count(text, place, input_type) for place, text in enumerate(texts)]
        parts = list(_parts(counted))
        tokens = [self._tokens(texts[part], counted[part], input_type) for part in parts]
        whole = sum(tokens)
        if whole > MAX_TOKENS:
            raise UnsupportedParameter(
                f"input: {whole} tokens are more than {MAX_TOKENS} in one request.", param="input"
            )
        reservation = Reservation(
            event_id=f"{self._request_id}:{CallNumber.EMBED_QUERY}",
            request_id=self._request_id,
            operation=Operation.EMBED_QUERY if input_type == "query" else Operation.EMBED_DOC,
            principal=self._principal,
            endpoint="embeddings",
            model=info.model,
            tokenizer_revision=info.revision,
            input_tokens=whole,
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
        return Embedded(np.concatenate(vectors), whole)

    def _count(self, text: str, place: int, input_type: InputType) -> int:
        """Tokens of one text, as the model reads it."""
        if not text.strip():
            raise UnsupportedParameter(f"input[{place}] is empty.", param=f"input.{place}")
        info = self._embedder.info
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
    """Neighbouring texts of about `_PART_TOKENS` together, at least one; `counted` are their tokens."""
    start, tokens = 0, 0
    for place, count in enumerate(counted):
        if place > start and tokens + count > _PART_TOKENS:
            yield slice(start, place)
            start, tokens = place, 0
        tokens += count
    yield slice(start, len(counted))


def text_of(token_ids: Sequence[int], embedder: Embedder, *, place: int) -> str:
    """The text these tokens of the embedder are.

    A tokenizer reads every text in one way: ids that come out of their text otherwise are another model's, and
    would be a vector of other words.

    Raises:
        UnsupportedParameter: Its tokenizer cannot be had, or they are not how it reads any text.
    """
    if not isinstance(embedder, Tokenizing):
        raise UnsupportedParameter("input: token ids are not supported by this embedder; send text.", param="input")
    tokenizer, ids = embedder.tokenizer, list(token_ids)
    known = max(ids) < tokenizer.get_vocab_size()
    text = tokenizer.decode(ids, skip_special_tokens=True) if known else ""
    if text and ids in (tokenizer.encode(text).ids, tokenizer.encode(text, add_special_tokens=False).ids):
        return str(text)
    raise UnsupportedParameter(
        f"input[{place}] are no token ids of {embedder.info.model}, perhaps another model's; send text.",
        param=f"input.{place}",
    )
