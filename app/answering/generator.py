"""Hands the prompt of an answer to the engine, as a call that is on the ledger before the engine reads it."""

from dataclasses import replace

from app.answering.abstention import watched_refusal
from app.answering.calls import CallNumber, submit
from app.answering.prepared import Prepared
from app.answering.question import Limits
from app.types import Operation
from app.usage.ledger.ledger import Ledger
from generation.errors import EngineFull
from generation.ports import Engine, Tokenizer
from generation.types import GenerationRequest


class Generator:
    """Begins the generation of answers. One instance serves every request.

    >>> prepared = generator.begin(prepared)
    >>> async for event in prepared.call.stream:
    ...     print(event)
    """

    def __init__(
        self, *, engine: Engine, tokenizer: Tokenizer, tokenizer_revision: str, ledger: Ledger, limits: Limits
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._tokenizer_revision = tokenizer_revision
        self._ledger = ledger
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
        """`prepared` with its call, reserved on the ledger and accepted by the engine.

        Raises:
            ConstraintInvalid: The question's JSON schema cannot be used.
            DeadlinePassed: There is no time left.
            EngineFull, EngineStopped: The engine refused it.
            BudgetExceeded, StoreUnavailable, StorageFull: It was not reserved, and not handed to the engine.
        """
        question, prompt, max_output = prepared.question, prepared.prompt, prepared.budget.reserved_output
        deadline_s = question.require_time()
        reservation = question.reservation(
            call=CallNumber.ANSWER,
            operation=Operation.CHAT,
            model=self.model,
            tokenizer_revision=self._tokenizer_revision,
            input_tokens=prompt.components.total,
            max_output_tokens=max_output,
            components=prompt.components,
            documents=prompt.shares(prepared.context),
        )
        request = GenerationRequest(
            question.run_id,
            prompt.ids,
            replace(question.sampling, max_tokens=max_output),
            salt=question.principal.tenant_id,
            user=question.principal.user_id or question.principal.key_id,
            deadline_s=deadline_s,
            constraint=question.constraint(len(prepared.context.sources)),
            sources=prompt.sources,
            abstention=watched_refusal(question, prepared.context, tokenizer=self._tokenizer, limits=self._limits),
        )
        return replace(
            prepared,
            abstention_threshold=None if request.abstention is None else request.abstention.threshold,
            call=submit(self._engine, self._ledger, reservation, request),
        )
