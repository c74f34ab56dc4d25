"""Finishes an answer: adds its bill, stores its turn of the conversation, records the documents it cites."""

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
"""How long the last event waits for the citations to be recorded; after that they are recorded in the background."""


class CitationRecord(Protocol):
    """Records the documents that answers cite.

    >>> record.record("req_1", tenant_id="acme", citations={"doc_1": 2})
    """

    def record(self, request_id: str, *, tenant_id: str, citations: Mapping[str, int]) -> None:
        """Store how often an answer cites each document, by document id. Idempotent for each answer.

        Raises:
            StoreUnavailable, StorageFull: Nothing was stored.
        """


class Closing:
    """Finishes answers. One instance serves every request; without a `CitationRecord` no citations are recorded."""

    def __init__(
        self, *, ledger: Ledger, conversations: Conversations | None = None, citations: CitationRecord | None = None
    ) -> None:
        self._ledger = ledger
        self._conversations = conversations
        self._citations = citations

    async def ended(self, question: Question, answer: Answer) -> Answer:
        """The answer with its bill, stored in its conversation before the last event is sent.

        It is stored even if the client leaves meanwhile.
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
        """Start to record the documents that a complete answer cites; the future ends when that is done or has failed.

        It continues in a thread if the caller stops waiting. A failure is logged and not raised: the answer is sent.
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
        except Exception as error:  # noqa: BLE001 - the answer is sent all the same; the error is logged
            logger().warning("citations.unwritten", request_id=question.request_id, error=type(error).__name__)

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        try:
            return self._ledger.bill(request_id)
        except StoreUnavailable:  # an answer without its price is better than no answer
            return None
