"""Hands the prompt of an answer to the engine, as a call that is on the ledger before the engine reads it."""

from dataclasses import replace

from app.answering.generating.refusing import watched_refusal
from app.answering.metering.token_usage import Purpose
from app.answering.prepared import Prepared
from app.answering.question import Limits
from generation.errors import EngineFull
from generation.ports import Engine, Tokenizer


class Generator:
    """Begins the generation of answers. One instance serves every request.

    >>> prepared = generator.begin(prepared)
    >>> async for event in prepared.stream:
    ...     print(event)
    """

    def __init__(self, *, engine: Engine, tokenizer: Tokenizer, limits: Limits) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._limits = limits

    @property
    def model(self) -> str:
        """The name of the engine's model."""
        return self._engine.info.model

    def require_room(self) -> None:
        """Check that not too many calls wait for the engine.

        Raises:
            EngineFull: More than `Limits.max_waiting` wait.
        """
        if self._engine.stats().waiting > self._limits.max_waiting:
            raise EngineFull(retry_after_s=1)

    def begin(self, prepared: Prepared) -> Prepared:
        """`prepared` with the stream of its call, reserved on the ledger and accepted by the engine.

        Raises:
            ConstraintInvalid: The question's JSON schema cannot be used.
            DeadlinePassed: There is no time left.
            EngineFull, EngineStopped: The engine refused it.
            BudgetExceeded, StoreUnavailable, StorageFull: It was not reserved, and not handed to the engine.
        """
        question, prompt, context = prepared.question, prepared.prompt, prepared.context
        deadline_s = question.require_time()
        abstention = watched_refusal(question, context, tokenizer=self._tokenizer, limits=self._limits)
        stream = prepared.meter.generating(
            Purpose.ANSWER,
            prompt,
            replace(question.sampling, max_tokens=prepared.budget.reserved_output),
            documents=prompt.shares(context),
            deadline_s=deadline_s,
            constraint=question.constraint(len(context.sources)),
            abstention=abstention,
        )
        return replace(
            prepared, abstention_threshold=None if abstention is None else abstention.threshold, stream=stream
        )
