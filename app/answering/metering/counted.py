"""The count of one model call while it goes on; several threads may read it."""

from dataclasses import replace

from app.answering.metering.token_usage import ModelCall, Purpose
from generation.types import Completion


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
