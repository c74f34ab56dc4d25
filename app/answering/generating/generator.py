"""Hands the prompt of an answer to the engine, as a call that is on the ledger before the engine reads it."""

from dataclasses import dataclass, replace

from app.answering.generating.refusing import watched_refusal
from app.answering.generating.wording import Wording
from app.answering.metering.meter import Meter
from app.answering.metering.token_usage import Purpose
from app.answering.prompt import Prompt
from app.answering.question import AnswerDefaults, Question
from generation.errors import EngineFull
from generation.ports import Engine, Stream, Tokenizer
from retrieval.types import Context


@dataclass(frozen=True, slots=True)
class Generation:
    """A text that the engine generates.

    `refused_from` is the probability of a refusal from which on the engine refuses; None leaves that to the model.
    """

    stream: Stream
    refused_from: float | None


class Generator:
    """Begins the generation of answers. One instance serves every request.

    >>> generation = generator.begin(question, prompt, context, output=64, meter=meter)
    >>> async for event in generation.stream:
    ...     print(event)
    """

    def __init__(self, *, engine: Engine, tokenizer: Tokenizer, limits: AnswerDefaults, wording: Wording) -> None:
        """`wording` asks the model to refuse in words that the engine watches."""
        self._engine = engine
        self._tokenizer = tokenizer
        self._limits = limits
        self._wording = wording

    @property
    def model(self) -> str:
        """The name of the engine's model."""
        return self._engine.info.model

    def require_room(self) -> None:
        """Check that not too many calls wait for the engine.

        Raises:
            EngineFull: More than `AnswerDefaults.max_waiting` wait.
        """
        if self._engine.stats().waiting > self._limits.max_waiting:
            raise EngineFull(retry_after_s=1)

    def begin(self, question: Question, prompt: Prompt, context: Context, *, output: int, meter: Meter) -> Generation:
        """The generation of an answer of at most `output` tokens, reserved on the ledger and accepted by the engine.

        Raises:
            ConstraintInvalid: The question's JSON schema cannot be used.
            DeadlinePassed: There is no time left.
            EngineFull, EngineStopped: The engine refused it.
            BudgetExceeded, StoreUnavailable, StorageFull: It was not reserved, and not handed to the engine.
        """
        deadline_s = question.require_time()
        abstention = watched_refusal(
            question, context, tokenizer=self._tokenizer, limits=self._limits, wording=self._wording
        )
        stream = meter.generating(
            Purpose.ANSWER,
            prompt,
            replace(question.sampling, max_tokens=output, stop_repetition=question.json_schema is None),
            documents=prompt.shares(context),
            deadline_s=deadline_s,
            constraint=question.constraint(len(context.sources)),
            abstention=abstention,
        )
        return Generation(stream, None if abstention is None else abstention.threshold)
