"""Runs one watched question: access anew, its passages, an answer if they differ, an event if the evidence does."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from app.answering.answerer import Answerer
from app.answering.answers.answer import Answer
from app.answering.answers.parts import Reason
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.clock import pause_after
from app.db.acting import ActingPrincipals
from app.db.collections import CollectionRepository
from app.db.watch_runs import ClaimedWatch, NewEvent, WatchLook
from app.db.watches import Watch
from app.errors import BudgetExceeded, Forbidden, NotFound
from app.ids import new_id
from app.telemetry.logs import logger
from app.types import Principal
from app.unattended.asking import ask_unattended, kept_answer, told
from app.usage.budgets.windows import edges_of
from app.watches.evidence import AnswerEvidence, EvidenceDifference, differences
from retrieval.errors import InvalidFilter
from retrieval.types import Context

ENDPOINT = "watch"
"""Names these calls on the ledger."""

Presented = tuple[tuple[str, int, int, int], ...]
"""Passages in order: document, version, first character, and one past the last."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 3600.0
_NOT_NOW = "The question could not be answered; it is tried again."


class Watching:
    """Runs watches. One instance serves one thread.

    Example:
        >>> watching.look(claimed)  # the same passages as last time: nothing was asked
        WatchLook(state='current', looked=True, …)
    """

    def __init__(
        self,
        *,
        principals: ActingPrincipals,
        collections: CollectionRepository,
        zone: ZoneInfo,
        clock: Callable[[], float],
        deadline_s: float = 600.0,
        deliver: bool = False,
    ) -> None:
        """Budgets have the days and months of `zone`; `clock` gives Unix seconds.

        An answer takes `deadline_s` seconds at most. `deliver` says whether events are to be posted to a webhook.
        """
        self._principals = principals
        self._collections = collections
        self._zone = zone
        self._clock = clock
        self._deadline_s = deadline_s
        self._deliver = deliver

    def look(
        self, claimed: ClaimedWatch, answerer: Answerer, *, stopping: Callable[[], bool] = lambda: False
    ) -> WatchLook:
        """Run a watch, in a thread without an event loop; once `stopping` says so, the run ends as `stopped`.

        Nothing is raised for what keeps a watch from its answer: the result says why, and when it is tried again.
        """
        watch = claimed.watch
        edges = edges_of(watch.budget.period if watch.budget else "total", round(self._clock() * 1e6), self._zone)
        used = watch.used_tokens if watch.used_since == edges.start else 0
        spent = _Spent(used, edges.start)
        if watch.budget is not None and used >= watch.budget.tokens:
            seconds = 0.0 if edges.end is None else edges.end / 1e6 - self._clock()
            detail = f"Its budget of {watch.budget.tokens} tokens for this {watch.budget.period} is used up."
            return spent.look(state="over_budget", detail=detail, after_s=max(1.0, seconds))
        try:
            principal = self._principals.of(watch.tenant_id, user_id=watch.user_id, key_id=watch.key_id)
            question = self._question(watch, principal)
        except (Forbidden, NotFound) as error:
            return spent.look(state="no_access", detail=str(error))
        except InvalidFilter as error:
            return _failed(watch, spent, str(error))
        return self._asked(watch, question, answerer, spent, stopping)

    def _asked(
        self, watch: Watch, question: Question, answerer: Answerer, spent: "_Spent", stopping: Callable[[], bool]
    ) -> WatchLook:
        meter = answerer.meters.of(question)
        presented: list[Presented] = []

        def known(context: Context) -> bool:
            presented.append(passages_of(context))
            return presented[-1] == watch.presented

        try:
            answer = ask_unattended(answerer, question, meter=meter, unless=known, stopping=stopping)
        except BudgetExceeded as error:
            spent.add(meter)
            after_s = None if error.wait_s is None else max(error.wait_s, _FIRST_PAUSE_S)
            return spent.look(state="over_budget", detail=str(error), after_s=after_s)
        except Exception as error:  # noqa: BLE001 - any failure is the watch's state, and logged
            logger().warning("watch.failed", watch=watch.id, error=type(error).__name__)
            spent.add(meter)
            return _failed(watch, spent, told(error) or _NOT_NOW)
        spent.add(meter)
        if answer is None:
            return spent.look(state=watch.state, stopped=True)
        return self._found(watch, answer, presented[-1] if presented else (), spent)

    def _question(self, watch: Watch, principal: Principal) -> Question:
        scope = self._collections.scope(
            principal,
            collection_ids=watch.scope.collection_ids,
            document_ids=watch.scope.document_ids,
            raw_filter=watch.scope.filter,
        )
        return Question(
            request_id=new_id("req"),
            endpoint=ENDPOINT,
            principal=principal,
            text=watch.question,
            scope=scope,
            deadline=time.monotonic() + self._deadline_s,
        )

    def _found(self, watch: Watch, answer: Answer, presented: Presented, spent: "_Spent") -> WatchLook:
        if answer.reason is Reason.DRY_RUN:
            return spent.look(state="current", looked=True)
        if not answer.whole or answer.reason in {Reason.CANCELLED, Reason.ERROR}:
            return _failed(watch, spent, answer.error or _NOT_NOW)
        kept = kept_answer(answer, at=self._clock())
        event = None
        if watch.answer is not None and (found := differences(evidence_of(watch.answer), evidence_of(kept))):
            event = NewEvent(watch.answer, kept, tuple(map(_as_json, found)), deliver=self._deliver)
        return spent.look(state="current", looked=True, presented=presented, answer=kept, event=event)


@dataclass(slots=True)
class _Spent:
    """The tokens that a watch used in the period that began at `since`, microseconds."""

    tokens: int
    since: int

    def add(self, meter: Meter) -> None:
        self.tokens += sum(call.total_tokens for call in meter.calls)

    def look(self, **found: Any) -> WatchLook:
        return WatchLook(used_tokens=self.tokens, used_since=self.since, **found)


def _failed(watch: Watch, spent: _Spent, detail: str) -> WatchLook:
    failures = watch.failures + 1
    after_s = pause_after(failures, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
    return spent.look(state="failing", detail=detail, failures=failures, after_s=after_s)


def passages_of(context: Context) -> Presented:
    """The passages that a context presents, in the order of documents and places."""
    return tuple(
        sorted(
            (source.hit.chunk.document_id, source.hit.chunk.version, span.start_char, span.end_char)
            for source in context.sources
            for span in source.spans
        )
    )


def evidence_of(kept: Mapping[str, Any]) -> AnswerEvidence:
    """The evidence of an answer that a watch keeps."""
    return AnswerEvidence(bool(kept["answered"]), tuple(kept["citations"]))


def _as_json(difference: EvidenceDifference) -> dict[str, Any]:
    return {"kinds": list(difference.kinds), "before": difference.before, "after": difference.after}
