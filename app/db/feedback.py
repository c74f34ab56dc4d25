"""Feedback on answers: one score and comment per answer and user, deleted with the answer's conversation."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.answer_citations import ANSWERING
from app.db.conversations import within
from app.db.dialect import upsert
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.answers import feedback
from app.db.tables.documents import app_user, conversation, conversation_turn
from app.db.tables.ledger import api_request
from app.db.tenants import ensure_user
from app.db.values import require_text
from app.errors import NotFound
from app.reach import Reach, reach_of
from app.types import Principal

_PUT = upsert(
    feedback,
    keys=("request_id", "user_id"),
    change=lambda new: {"score": new.score, "comment": new.comment, "updated_at": new.updated_at},
)
_OF_USER = sa.and_(app_user.c.tenant_id == feedback.c.tenant_id, app_user.c.id == feedback.c.user_id)
_OF_TURN = conversation_turn.c.request_id == feedback.c.request_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A user's feedback on an answer. `score` is from -1, bad, to 1, good. Times are Unix seconds."""

    request_id: str
    tenant_id: str
    user_id: str
    score: float
    comment: str | None
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFeedback(Feedback):
    """Feedback with the answer's conversation and question; None when the answer is not in a conversation.

    `user_name` is the display name of the user who gave it, empty without one.
    """

    conversation_id: str | None
    question: str | None
    user_name: str


class FeedbackRepository:
    """Feedback of all tenants; `clock` gives Unix seconds.

    The user who asked and the tenant's administrators may give feedback. A key that is limited to collections must have
    asked itself. For all others the answer does not exist.

    Example:
        >>> feedback, is_new = FeedbackRepository(database).put("req_1", principal=principal, score=1.0)
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def put(
        self, request_id: str, *, principal: Principal, score: float, comment: str | None = None
    ) -> tuple[Feedback, bool]:
        """Set the feedback of the caller's user on an answer; returns it, and whether it is new.

        Args:
            request_id: The request of the answer.
            principal: The caller.
            score: From -1, bad, to 1, good.
            comment: A blank comment is stored as none.

        Raises:
            NotFound: No such answer for this caller.
            InvalidRequest: The comment cannot be stored.
        """
        assert -1 <= score <= 1, "checked in the request body"
        require_text(comment or "", param="comment")
        kept = comment if comment is not None and comment.strip() else None
        now = self._clock()
        with self._database.write() as connection:
            _require_asked(connection, request_id, reach_of(principal))
            ensure_user(connection, principal.tenant_id, principal.user_id, now=now)
            before = connection.execute(_own(sa.select(feedback), request_id, principal)).one_or_none()
            row = connection.execute(
                _PUT.on(connection).returning(feedback),
                {
                    "request_id": request_id,
                    "tenant_id": principal.tenant_id,
                    "user_id": principal.user_id,
                    "created_at": now,
                    "updated_at": now,
                    "score": score,
                    "comment": kept,
                },
            ).one()
            return _to_feedback(row), before is None

    def withdraw(self, request_id: str, *, principal: Principal) -> None:
        """Delete the feedback of the caller's user on an answer, if there is any.

        Raises:
            NotFound: No such answer for this caller.
        """
        with self._database.write() as connection:
            _require_asked(connection, request_id, reach_of(principal))
            connection.execute(_own(sa.delete(feedback), request_id, principal))

    def of_conversation(self, conversation_id: str, *, principal: Principal) -> dict[str, Feedback]:
        """The feedback of the caller's user on the answers of a conversation, by request id."""
        query = (
            sa.select(feedback)
            .join(conversation_turn, _OF_TURN)
            .where(
                conversation_turn.c.conversation_id == conversation_id,
                feedback.c.tenant_id == principal.tenant_id,
                feedback.c.user_id == principal.user_id,
            )
        )
        with self._database.read() as connection:
            return {row.request_id: _to_feedback(row) for row in connection.execute(query)}

    def list(
        self, *, tenant_id: str, limit: int, score_below: float | None = None, cursor: str | None = None
    ) -> tuple[tuple[ListedFeedback, ...], str | None]:
        """At most `limit` of a tenant's feedback, newest first, and the cursor of the next page (None: no more).

        Changed feedback keeps its place. With `score_below` only feedback with a lower score is listed.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        place = feedback.c.created_at, feedback.c.request_id, feedback.c.user_id
        query = (
            sa.select(
                feedback,
                conversation_turn.c.conversation_id,
                conversation_turn.c.question,
                app_user.c.name.label("user_name"),
            )
            .join(conversation_turn, _OF_TURN, isouter=True)
            .join(app_user, _OF_USER)
            .where(feedback.c.tenant_id == tenant_id)
            .order_by(*(column.desc() for column in place))
            .limit(limit + 1)
        )
        if score_below is not None:
            query = query.where(feedback.c.score < score_below)
        if cursor is not None:
            query = query.where(sa.tuple_(*place) < sa.tuple_(*decode_cursor(cursor, float, str, str)))
        with self._database.read() as connection:
            found = tuple(_to_listed(row) for row in connection.execute(query))
        return cut(found, limit, lambda one: (one.created_at, one.request_id, one.user_id))


def _require_asked(connection: sa.Connection, request_id: str, reach: Reach) -> None:
    """Check that the request is an answer on which the caller may give feedback.

    Conversations hold their answers, also those without a call of a model; the ledger holds the others.
    """
    kept = (
        sa.select(conversation.c.id)
        .join(conversation_turn)
        .where(conversation_turn.c.request_id == request_id, *within(reach))
        .with_for_update(read=True, of=conversation)  # a concurrent deletion waits, and deletes this feedback, too
    )
    called = sa.select(api_request.c.request_id).where(
        api_request.c.request_id == request_id, api_request.c.endpoint.in_(ANSWERING), *_asked_within(reach)
    )
    if not any(connection.execute(query).first() is not None for query in (kept, called)):
        raise NotFound("There is no such answer.")


def _asked_within(reach: Reach) -> tuple[sa.ColumnElement[bool], ...]:
    conditions = [api_request.c.tenant_id == reach.tenant_id]
    if reach.user_id is not None:
        conditions.append(api_request.c.user_id == reach.user_id)
    if reach.key_id is not None:
        conditions.append(api_request.c.api_key_id == reach.key_id)
    return tuple(conditions)


def _own(statement: Any, request_id: str, principal: Principal) -> Any:
    return statement.where(
        feedback.c.request_id == request_id,
        feedback.c.tenant_id == principal.tenant_id,
        feedback.c.user_id == principal.user_id,
    )


def _to_feedback(row: sa.Row[Any]) -> Feedback:
    return Feedback(
        request_id=row.request_id,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        score=row.score,
        comment=row.comment,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _to_listed(row: sa.Row[Any]) -> ListedFeedback:
    return ListedFeedback(
        request_id=row.request_id,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        score=row.score,
        comment=row.comment,
        created_at=row.created_at,
        updated_at=row.updated_at,
        conversation_id=row.conversation_id,
        question=row.question,
        user_name=row.user_name,
    )
