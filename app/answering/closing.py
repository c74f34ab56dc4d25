"""The end of an answer: what it cost, its turn in its conversation, and which documents it cites."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import Protocol

from app.answering.answer import Answer
from app.answering.conversations import Conversations
from app.answering.question import Question
from app.errors import StoreUnavailable
from app.telemetry.logs import logger
from app.usage.ledger.events import Bill
from app.usage.ledger.ledger import Ledger

RECORDING_SECONDS = 1.0
"""How long the end of an answer waits for its citations to be written down; they are then written without it."""


class CitationRecord(Protocol):
    """Where it is kept which documents answers cite."""

    def record(self, request_id: str, *, tenant_id: str, citations: Mapping[str, int]) -> None:
        """Keep how often an answer cites each document, by document id; again for the same answer changes nothing.

        Raises:
            StoreUnavailable, StorageFull: Nothing was kept.
        """


class Closing:
    """Ends answers. One instance serves every request; without a record nobody learns what is cited."""

    def __init__(
        self, *, ledger: Ledger, conversations: Conversations | None = None, citations: CitationRecord | None = None
    ) -> None:
        self._ledger = ledger
        self._conversations = conversations
        self._citations = citations

    async def ended(self, question: Question, answer: Answer) -> Answer:
        """The answer as its reader gets it, kept in its conversation before the end of it is told.

        So a reader who leaves then changes nothing: storing it goes on.
        """
        ended = replace(
            answer,
            conversation_id=question.conversation_id,
            standalone_question=question.standalone,
            usage=replace(answer.usage, bill=await asyncio.to_thread(self.bill, question.request_id)),
        )
        if self._conversations is not None and question.conversation_id is not None:
            await asyncio.shield(asyncio.to_thread(self._conversations.keep, question, ended))
        return ended

    def recording(self, question: Question, answer: Answer) -> "asyncio.Future[None]":
        """Begin to write down which documents a whole answer cites; done when that is written, or in the log.

        It goes on in a thread when nobody waits for it any more. It never fails: an answer that was made is given.
        """
        loop = asyncio.get_running_loop()
        cited = Counter(citation.document_id for citation in answer.citations)
        if self._citations is None or not cited or not answer.whole:
            nothing = loop.create_future()
            nothing.set_result(None)
            return nothing
        return loop.run_in_executor(None, copy_context().run, self._record, self._citations, question, cited)

    @staticmethod
    def _record(citations: CitationRecord, question: Question, cited: Mapping[str, int]) -> None:
        try:
            citations.record(question.request_id, tenant_id=question.principal.tenant_id, citations=cited)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is there; it is logged
            logger().warning("citations.unwritten", request_id=question.request_id, error=type(error).__name__)

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        try:
            return self._ledger.bill(request_id)
        except StoreUnavailable:  # the answer is made: that its price cannot be told now is no reason to lose it
            return None
