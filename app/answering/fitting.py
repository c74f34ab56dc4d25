"""Fits what was retrieved into the room of an answer: the sources that it is made from, and where they are."""

from functools import partial

from app.answering.citing.citation import layouts
from app.answering.languages.other_language import other_language
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.states.sources import NO_SOURCES, Fitted, Grounding, Retrieved, TokenBudget
from app.db.contents import ContentRepository
from app.telemetry.timing import timed
from retrieval.compress import compress
from retrieval.types import Context


class Fitting:
    """Fits hits into token budgets. One instance serves every request.

    >>> grounding = fitting.fit(question, retrieved, strategy.budget(question), meter)
    """

    def __init__(self, contents: ContentRepository) -> None:
        """`contents` has the pages of documents."""
        self._contents = contents

    def fit(self, question: Question, retrieved: Retrieved, budget: TokenBudget, meter: Meter) -> Grounding:
        """The sources that fit, in the order of the budget.

        Args:
            question: As it was understood.
            retrieved: The hits for it.
            budget: The room.
            meter: Meters the models that make more fit.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: A model's call was not reserved, and not made.
        """
        fitted = Fitted(NO_SOURCES)
        if retrieved.hits:
            with timed("compress"):
                fitted = _fitted(question, retrieved, budget, meter)
        return Grounding(
            question=question,
            retrieved=retrieved,
            budget=budget,
            context=fitted.context,
            summarised=fitted.summarised,
            pages=partial(layouts, self._contents, fitted.context, tenant_id=question.principal.tenant_id),
            note=other_language(question.text, retrieved.found),
        )


def _fitted(question: Question, retrieved: Retrieved, budget: TokenBudget, meter: Meter) -> Fitted:
    hits = retrieved.hits
    tokens = budget.sources if retrieved.overview is None else budget.overview

    def fit(tokens: int) -> Context:
        return compress(hits, query=question.text, budget=tokens, count_tokens=budget.count, order=budget.order)

    if budget.overflow is None:
        return Fitted(fit(tokens))
    return budget.overflow.fitted(question, hits, budget=tokens, fit=fit, order=budget.order, meter=meter)
