"""Asks the served language model a case, as its answers are asked for; each call is on the ledger."""

from app.answering.generating.model_class import ASKING, ModelClass
from app.answering.generating.prompt_layout import build_prompt
from app.answering.languages.recognition import answer_in
from app.answering.metering.meter import Meter, Meters
from app.answering.metering.settler import completions
from app.answering.metering.token_usage import Purpose
from app.answering.question import Question
from app.probing.cases import Needs, ProbeCase
from app.types import DEFAULT_TENANT, Principal, Role
from generation.errors import ContextLengthExceeded, EngineStopped, failure
from generation.ports import Tokenizer
from generation.types import CitationMarkers, FinishReason, SamplingParams
from retrieval.types import Scope

ENDPOINT = "probe"
"""What the ledger calls these calls by. Like the vectors of a new embedder, no user has asked for them."""

_WORDS = 100  # tokens of an answer in sentences
_FORM = 200  # tokens of a list or a table
_BEHIND_ANSWERS = -12  # an answer that waits goes first, for a minute (`generation.waiting_line`)


class CaseAsking:
    """Asks cases. One instance serves every probe of a process.

    >>> reply = asking.reply(case, number=0, meter=asking.meter(case, request_id="probe_1", number=0))
    """

    def __init__(self, *, tokenizer: Tokenizer, meters: Meters) -> None:
        self._tokenizer = tokenizer
        self._meters = meters

    def meter(self, case: ProbeCase, *, request_id: str, number: int) -> Meter:
        """The meter of a case, the `number`th of a probe, at the expense of the installation."""
        question = Question(
            request_id=request_id,
            endpoint=ENDPOINT,
            principal=Principal(DEFAULT_TENANT, "", "", Role.ADMIN),
            text=case.question,
            scope=Scope(tenant_id=DEFAULT_TENANT, collection_ids=None),
            choice=number,
        )
        return self._meters.of(question)

    def reply(self, case: ProbeCase, *, meter: Meter) -> str:
        """What the model replies; blocks until it is whole. Nothing where its context window has no room for that.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: It was not reserved, and not asked.
            GenerationError: The engine refused it, or did not finish it.
        """
        # lists and tables are asked for as a strong model is asked
        strong = case.kind is Needs.FORM
        wording = ASKING[ModelClass.STRONG if strong else ModelClass.WRITER].wording
        context = case.context(self._tokenizer.count)
        prompt = build_prompt(
            self._tokenizer,
            question=case.question,
            context=context,
            instructions=answer_in(case.question),
            wording=wording,
        )
        try:
            stream = meter.generating(
                Purpose.ANSWER,
                prompt,
                SamplingParams(max_tokens=_FORM if strong else _WORDS),
                constraint=CitationMarkers(len(context.sources)),
                priority=_BEHIND_ANSWERS,
            )
        except ContextLengthExceeded:
            return ""
        [completion] = completions([stream])
        assert completion is not None, "the call was made"
        if completion.finish_reason not in {FinishReason.STOP, FinishReason.LENGTH, FinishReason.REPETITION}:
            raise failure(completion.error or str(EngineStopped()))
        return completion.text
