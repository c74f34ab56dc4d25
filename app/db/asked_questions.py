"""Questions that are being answered in conversations, so that those which a crash interrupted are known afterwards."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.answers import asked_question
from app.db.tables.documents import conversation


@dataclass(frozen=True, slots=True)
class InterruptedQuestion:
    """A question whose answer ended with the process that wrote it. `created_at` is Unix seconds."""

    request_id: str
    question: str
    created_at: float


class AskedQuestionRepository:
    """A row for each question of a conversation from its start to the end of its answer.

    A row of a process that is gone is of a question that was interrupted.

    Example:
        >>> asked = AskedQuestionRepository(database, OwnProcess.alone("boot_1"))
        >>> asked.begin("req_1", conversation_id="conv_1", question="Who?")
        >>> asked.end("req_1")
    """

    def __init__(self, database: Database, own: OwnProcess) -> None:
        self._database = database
        self._own = own

    def begin(self, request_id: str, *, conversation_id: str, question: str) -> None:
        """Store a question; nothing where the conversation was deleted meanwhile.

        Raises:
            StoreUnavailable, StorageFull: It could not be stored.
        """
        there = sa.select(
            sa.literal(request_id),
            conversation.c.id,
            sa.literal(self._own.boot_id),
            sa.literal(question),
            sa.literal(self._own.clock(), sa.Double),
        ).where(conversation.c.id == conversation_id)
        columns = ["request_id", "conversation_id", "boot_id", "question", "created_at"]
        with self._database.write() as connection:
            connection.execute(sa.insert(asked_question).from_select(columns, there))

    def end(self, request_id: str) -> None:
        """Remove a question whose answer has ended, in whatever way. Idempotent.

        Raises:
            StoreUnavailable, StorageFull: It could not be removed.
        """
        with self._database.write() as connection:
            connection.execute(sa.delete(asked_question).where(asked_question.c.request_id == request_id))

    def interrupted(self, conversation_id: str) -> tuple[InterruptedQuestion, ...]:
        """The interrupted questions of a conversation that the caller may read, oldest first."""
        query = (
            sa.select(asked_question.c.request_id, asked_question.c.question, asked_question.c.created_at)
            .where(asked_question.c.conversation_id == conversation_id, self._own.gone(asked_question.c.boot_id))
            .order_by(asked_question.c.created_at, asked_question.c.request_id)
        )
        with self._database.read() as connection:
            return tuple(InterruptedQuestion(*row) for row in connection.execute(query))
