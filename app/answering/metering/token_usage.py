"""The model calls of an answer and the tokens they read and wrote: one bill, equal to the answer's ledger rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from app.types import Components
from app.usage.ledger.events import Bill
from generation.types import Completion


class Purpose(StrEnum):
    """What a model call of an answer is for."""

    EMBED_QUERY = "embed_query"
    EMBED_PASSAGES = "embed_passages"
    EXTRACT = "extract"
    LOCATE = "locate"
    COMPARE = "compare"
    RERANK = "rerank"
    REWRITE = "rewrite"
    SUMMARISE = "summarise"
    VERIFY = "verify"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a model, as its ledger row counts it: tokens read (`cached_tokens` of them reused) and written.

    A `planned` call is that of a dry run: it was not made and is on no ledger.
    """

    purpose: Purpose
    model: str
    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0
    planned: bool = False

    @classmethod
    def generated(cls, purpose: Purpose, model: str, completion: Completion) -> "ModelCall":
        """The call that ended with `completion`."""
        return cls(
            purpose=purpose,
            model=model,
            prompt_tokens=completion.prompt_tokens,
            cached_tokens=completion.cached_tokens,
            completion_tokens=completion.generated_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of one answer: those of its `calls`, which have tokens each and equal the answer's ledger rows.

    Attributes:
        components: The prompt of the answering call, by component; all 0 where no language model answers.
        by_document: Context tokens by document id; they sum to `components.context`.
        calls: The calls in the order they were made.
        bill: None until the answer has ended, and where the ledger could not be read then.
    """

    components: Components
    by_document: Mapping[str, int]
    calls: tuple[ModelCall, ...] = ()
    bill: Bill | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens that all calls read."""
        return sum(call.prompt_tokens for call in self.calls)

    @property
    def cached_tokens(self) -> int:
        """Those of the `prompt_tokens` that were reused from the KV cache."""
        return sum(call.cached_tokens for call in self.calls)

    @property
    def completion_tokens(self) -> int:
        """Tokens that all calls wrote."""
        return sum(call.completion_tokens for call in self.calls)

    @property
    def total_tokens(self) -> int:
        """Tokens read and written by all calls."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def answer_tokens(self) -> int:
        """Tokens that a language model wrote as the answer; 0 where quotes or nothing answer."""
        return sum(call.completion_tokens for call in self.calls if call.purpose is Purpose.ANSWER)

    def tokens_for(self, *purposes: Purpose) -> int:
        """Tokens read and written by the calls for some purposes."""
        return sum(call.total_tokens for call in self.calls if call.purpose in purposes)


def total(usages: Iterable[TokenUsage]) -> TokenUsage:
    """The sum of usages: all their calls, the sums by component and document, and the bill of the first."""
    usages = tuple(usages)
    components, by_document = Components(), dict[str, int]()
    for usage in usages:
        components = components.plus(usage.components)
        for document_id, tokens in usage.by_document.items():
            by_document[document_id] = by_document.get(document_id, 0) + tokens
    return TokenUsage(
        components=components,
        by_document=by_document,
        calls=tuple(call for usage in usages for call in usage.calls),
        bill=usages[0].bill if usages else None,
    )


class CountedCall:
    """What a call has read and written so far, as its ledger row will count it.

    >>> counted = CountedCall(Purpose.RERANK, model="reranker")
    >>> counted.read(90)
    >>> counted.call.prompt_tokens
    90
    """

    def __init__(self, purpose: Purpose, *, model: str) -> None:
        self.call = ModelCall(purpose=purpose, model=model, prompt_tokens=0)

    def read(self, tokens: int) -> None:
        """It has read this many tokens in all."""
        self.call = replace(self.call, prompt_tokens=tokens)

    def ended(self, completion: Completion) -> None:
        """It ended with `completion`."""
        self.call = ModelCall.generated(self.call.purpose, self.call.model, completion)


def called(*calls: ModelCall) -> tuple[ModelCall, ...]:
    """The calls that read or wrote a token: a call refused by the engine or stopped before it began has none."""
    return tuple(call for call in calls if call.total_tokens)
