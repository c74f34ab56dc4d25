"""Asks one cell of a table: access anew, the document alone as its scope, an answer, or why there is none."""

import time
from collections.abc import Callable
from typing import Any

from app.answering.answerer import Answerer
from app.answering.answers.answer import Answer
from app.answering.answers.parts import Reason
from app.answering.question import Question
from app.clock import pause_after
from app.db.acting import ActingPrincipals
from app.db.answer_tables import CellState
from app.db.collections import CollectionRepository
from app.db.documents import DocumentRepository
from app.db.table_cells import MOST_ATTEMPTS, CellFinding, ClaimedCell
from app.errors import BudgetExceeded, Forbidden, InvalidRequest, NotFound, RateLimited, ServerFull
from app.telemetry.logs import logger
from app.unattended.asking import ask_unattended, kept_answer, told
from generation.errors import ContextLengthExceeded, EngineFull

ENDPOINT = "table"
"""Names these calls on the ledger."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 300.0
_LATER = (RateLimited, ServerFull, EngineFull)
_NEVER = (InvalidRequest, ContextLengthExceeded, NotFound)
"""Errors that another try would have, too."""

_NO_ANSWER = "The question could not be answered."


class Filling:
    """Asks cells. One instance serves one thread.

    Example:
        >>> filling.fill(claimed, answerer).state
        'answered'
    """

    def __init__(
        self,
        *,
        principals: ActingPrincipals,
        collections: CollectionRepository,
        documents: DocumentRepository,
        clock: Callable[[], float],
        deadline_s: float = 600.0,
    ) -> None:
        """An answer takes `deadline_s` seconds at most; `clock` gives Unix seconds."""
        self._principals = principals
        self._collections = collections
        self._documents = documents
        self._clock = clock
        self._deadline_s = deadline_s

    def fill(
        self, claimed: ClaimedCell, answerer: Answerer, *, stopping: Callable[[], bool] = lambda: False
    ) -> CellFinding:
        """Ask a cell, in a thread without an event loop; once `stopping` says so, it waits again.

        Nothing is raised for what keeps it from its answer: the finding says why. A key that may not ask any more and
        a budget without room stop the table, a rate limit has it wait; anything else concerns this cell alone.
        """
        try:
            question = self._question(claimed)
            if question is None:
                return _again(claimed, "The document is not ingested yet.")
            answer = ask_unattended(answerer, question, stopping=stopping)
        except (Forbidden, BudgetExceeded) as error:
            return _not_asked(stops=str(error))
        except _LATER as error:
            return _not_asked(pauses=str(error), again_s=float(error.retry_after_s))
        except Exception as error:  # noqa: BLE001 - any failure is the cell's alone, and logged
            logger().warning("table.failed", table=claimed.table_id, error=type(error).__name__)
            return _again(claimed, told(error) or _NO_ANSWER, final=isinstance(error, _NEVER))
        return _not_asked() if answer is None else self._found(claimed, answer)

    def _question(self, claimed: ClaimedCell) -> Question | None:
        """The question of a cell; None where its document is not ingested yet.

        Raises:
            Forbidden: The key may not ask any more.
            NotFound: The document is deleted, or not the key's any more.
        """
        principal = self._principals.of(claimed.tenant_id, user_id=claimed.user_id, key_id=claimed.key_id)
        document = self._documents.get(
            claimed.document_id, tenant_id=principal.tenant_id, collections=principal.collections
        )
        if document.live_version is None:
            return None
        scope = self._collections.scope(
            principal, collection_ids=None, document_ids=[claimed.document_id], raw_filter=None
        )
        return Question(
            request_id=claimed.request_id,
            endpoint=ENDPOINT,
            principal=principal,
            text=claimed.column.question,
            scope=scope,
            length=claimed.length,
            deadline=time.monotonic() + self._deadline_s,
        )

    def _found(self, claimed: ClaimedCell, answer: Answer) -> CellFinding:
        if not answer.whole or answer.reason in {Reason.CANCELLED, Reason.ERROR}:
            return _again(claimed, answer.error or _NO_ANSWER)
        return CellFinding(state=_state(answer), answer=_kept(answer, at=self._clock()))


def _state(answer: Answer) -> CellState:
    """A reply without a footnote, as to a greeting, is unsure: nothing of the document bears it."""
    if answer.reason is not None and answer.reason.refuses:
        return "refused"
    return "answered" if answer.reason is None and answer.citations else "unsure"


def _kept(answer: Answer, *, at: float) -> dict[str, Any]:
    lead = answer.lead
    return {
        **kept_answer(answer, at=at),
        "value": None if lead is None else answer.text[lead.start_char : lead.end_char],
        "verified": bool(answer.citations) and all(citation.verified for citation in answer.citations),
        "probability": answer.probability,
    }


def _not_asked(*, stops: str | None = None, pauses: str | None = None, again_s: float = 0.0) -> CellFinding:
    return CellFinding(state="waiting", counted=False, stops=stops, pauses=pauses, again_s=again_s)


def _again(claimed: ClaimedCell, error: str, *, final: bool = False) -> CellFinding:
    """Another try, unless this was the last; the reason stands meanwhile."""
    if final or claimed.attempts >= MOST_ATTEMPTS:
        return CellFinding(state="failed", error=error)
    again_s = pause_after(claimed.attempts, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
    return CellFinding(state="waiting", error=error, again_s=again_s)
