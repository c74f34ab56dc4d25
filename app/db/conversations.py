"""Conversations and their turns. They belong to the user who began them, and may be shared with the tenant."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from app.db.conversation_search import ConversationHit, hits_of, holds
from app.db.conversation_turns import TURNS, append_turn, to_turn
from app.db.idempotency import forget_answers, note_effect
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.answers import asked_question, feedback
from app.db.tables.documents import app_user, conversation, conversation_turn, document
from app.db.tenants import ensure_user
from app.db.tenants import within as rows_within
from app.db.values import KEEP, Keep, require_metadata, require_text
from app.errors import Conflict, Forbidden, NotFound
from app.ids import new_id
from app.reach import Reach, reach_of
from app.types import Conversation, KeptTurn, Principal, Turn
from retrieval.types import Metadata

Owner: TypeAlias = Literal["anybody", "me", "others"]
"""The owners whose conversations are listed."""

MOST_CONVERSATIONS = 10_000
"""Conversations that one user may have."""

_IDS_A_QUERY = 500

_counted = sa.select(
    conversation,
    sa.select(app_user.c.name)
    .where(app_user.c.tenant_id == conversation.c.tenant_id, app_user.c.id == conversation.c.user_id)
    .correlate(conversation)
    .scalar_subquery()
    .label("user_name"),
    sa.select(sa.func.count())
    .where(conversation_turn.c.conversation_id == conversation.c.id)
    .correlate(conversation)
    .scalar_subquery()
    .label("turns"),
    sa.select(sa.func.count())
    .where(asked_question.c.conversation_id == conversation.c.id)
    .correlate(conversation)
    .scalar_subquery()
    .label("unanswered"),
)


class ConversationRepository:
    """Conversations of all tenants.

    A conversation is accessible to its user and to the tenant's administrators. A key that is limited to collections
    accesses only conversations which it began itself, since the turns of other keys may quote other collections. A
    shared conversation can be read by every other unlimited key of the tenant that has its id; no list contains it.

    Example:
        >>> conversations = ConversationRepository(database)
        >>> conversation = conversations.create(principal, title="Notice periods")
        >>> conversations.turns(conversation.id, principal=principal, newest=10)
        ()
    """

    def __init__(
        self, database: Database, *, most: int = MOST_CONVERSATIONS, clock: Callable[[], float] = time.time
    ) -> None:
        """`most` is the number of conversations that a user may have."""
        self._database = database
        self._most = most
        self._clock = clock

    def create(
        self, principal: Principal, *, title: str | None = None, metadata: Metadata | None = None
    ) -> Conversation:
        """A new conversation without turns.

        Raises:
            InvalidRequest: A title or metadata that cannot be stored.
            Conflict: The user has as many conversations as a user may have.
        """
        require_text(title or "", param="title")
        require_metadata(metadata or {})
        self.require_room(principal)
        with self._database.write() as connection:
            made = insert_conversation(
                connection, principal, now=self._clock(), title=title or None, metadata=dict(metadata or {})
            )
            note_effect(connection)
            return _find(connection, made)

    def require_room(self, principal: Principal) -> None:
        """Check that the user may have one more conversation, those in no list counted.

        Requests at the same moment may pass together; the limit keeps a disk from filling, it is no exact quota.

        Raises:
            Conflict: The user has as many conversations as a user may have.
        """
        own = conversation.c.tenant_id == principal.tenant_id, conversation.c.user_id == principal.user_id
        found = sa.select(conversation.c.id).where(*own).limit(self._most).subquery()
        with self._database.read() as connection:
            count = connection.execute(sa.select(sa.func.count()).select_from(found)).scalar_one()
        if count >= self._most:
            raise Conflict(f"You have {self._most:,} conversations, the most that a user may have. Delete one first.")

    def get(self, conversation_id: str, *, principal: Principal) -> Conversation:
        """The conversation.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.read() as connection:
            return _find(connection, conversation_id, _readable(reach_of(principal)))

    def list(
        self, principal: Principal, *, limit: int, cursor: str | None = None, owner: Owner = "anybody"
    ) -> tuple[tuple[Conversation, ...], str | None]:
        """At most `limit` conversations, pinned ones and then the newest first, and the cursor of the next page.

        The cursor is None on the last page. `owner` leaves out those of other users, or the caller's own.

        Raises:
            InvalidRequest: The cursor is not of this list.
        """
        with self._database.read() as connection:
            return _page(connection, _counted.where(*_listed(principal, owner)), limit, cursor)

    def search(
        self, principal: Principal, q: str, *, limit: int, cursor: str | None = None, owner: Owner = "anybody"
    ) -> tuple[tuple[tuple[Conversation, ConversationHit], ...], str | None]:
        """Those of `list` whose title, questions or answers contain `q`, each with the first place where they do.

        Raises:
            InvalidRequest: The cursor is not of this list, or `q` cannot be stored.
        """
        require_text(q, param="q")
        with self._database.read() as connection:
            found, next_cursor = _page(connection, _counted.where(*_listed(principal, owner), holds(q)), limit, cursor)
            hits = hits_of(connection, q, [(one.id, one.title) for one in found])
        return tuple((one, hits[one.id]) for one in found), next_cursor

    def turns(self, conversation_id: str, *, principal: Principal, newest: int | None = None) -> tuple[KeptTurn, ...]:
        """The turns, oldest first; with `newest` only that many of the last.

        Raises:
            NotFound: No such conversation.
        """
        of_conversation = conversation_turn.c.conversation_id == conversation_id
        query = TURNS.where(of_conversation).order_by(conversation_turn.c.ordinal.desc())
        with self._database.read() as connection:
            _find(connection, conversation_id, _readable(reach_of(principal)))
            rows = connection.execute(query if newest is None else query.limit(newest)).all()
        return tuple(to_turn(row) for row in reversed(rows))

    def turn(self, request_id: str, *, principal: Principal) -> KeptTurn:
        """The turn with the answer to a request, of a conversation that the caller may read.

        Raises:
            NotFound: No such answer is kept for this caller.
        """
        query = TURNS.join(conversation, conversation.c.id == conversation_turn.c.conversation_id)
        mine = conversation_turn.c.request_id == request_id, _readable(reach_of(principal))
        with self._database.read() as connection:
            row = connection.execute(query.where(*mine)).one_or_none()
        if row is None:
            raise NotFound("There is no such answer, or it is not kept: those of conversations and responses are.")
        return to_turn(row)

    def deleted_documents(self, turns: Iterable[KeptTurn], *, tenant_id: str) -> tuple[str, ...]:
        """The ids of the documents that the turns cite and that are deleted, or being deleted, in their order."""
        cited = [
            *dict.fromkeys(
                str(citation["document_id"])
                for turn in turns
                for citation in turn.citations
                if isinstance(citation.get("document_id"), str)
            )
        ]
        there: set[str] = set()
        with self._database.read() as connection:
            for start in range(0, len(cited), _IDS_A_QUERY):
                block = cited[start : start + _IDS_A_QUERY]
                kept = document.c.tenant_id == tenant_id, document.c.status != "deleting"
                found = sa.select(document.c.id).where(document.c.id.in_(block), *kept)
                there.update(connection.execute(found).scalars())
        return tuple(one for one in cited if one not in there)

    def require_open(self, conversation_id: str, *, principal: Principal) -> None:
        """Check that this caller may add turns.

        Raises:
            NotFound: No such conversation.
            Forbidden: It belongs to another user and is shared for reading.
            Conflict: A key limited to collections began it, and the caller has another key.
        """
        with self._database.read() as connection:
            found = _find_own(connection, conversation_id, reach_of(principal))
        if found.key_id not in {None, principal.key_id}:
            raise Conflict("A key limited to collections began this conversation; only that key can continue it.")

    def append(self, conversation_id: str, turn: Turn) -> bool:
        """Append a turn, in one transaction; False when the conversation was deleted or has the turn already."""
        with self._database.write() as connection:
            return append_turn(connection, conversation_id, turn, now=self._clock())

    def update(
        self,
        conversation_id: str,
        *,
        principal: Principal,
        title: str | Keep = KEEP,
        metadata: Metadata | Keep = KEEP,
        shared: bool | Keep = KEEP,
        pinned: bool | Keep = KEEP,
        folder: str | Keep = KEEP,
    ) -> Conversation:
        """Change what is given; `updated_at` stays. An empty `folder` takes it out of its folder.

        Raises:
            NotFound: No such conversation.
            Forbidden: It belongs to another user and is shared for reading.
            InvalidRequest: A title, folder or metadata that cannot be stored.
        """
        if title is not KEEP:
            require_text(title, param="title")
        if folder is not KEEP:
            require_text(folder, param="folder")
        if metadata is not KEEP:
            require_metadata(metadata)
        changes: dict[str, object] = {"title": title, "metadata": metadata, "shared": shared, "pinned": pinned}
        changes["folder"] = folder if folder is KEEP else folder or None
        values = {name: value for name, value in changes.items() if value is not KEEP}
        with self._database.write() as connection:
            _find_own(connection, conversation_id, reach_of(principal))
            if values:
                mine = conversation.c.id == conversation_id
                connection.execute(sa.update(conversation).where(mine).values(**values))
            return _find_own(connection, conversation_id, reach_of(principal))

    def delete(self, conversation_id: str, *, principal: Principal) -> None:
        """Delete it with its turns and their feedback. Final: an answer that ends later is not kept.

        Raises:
            NotFound: No such conversation.
            Forbidden: It belongs to another user and is shared for reading.
        """
        mine = conversation.c.id == conversation_id
        with self._database.write() as connection:
            connection.execute(sa.select(conversation.c.id).where(mine).with_for_update())
            _find_own(connection, conversation_id, reach_of(principal))
            of_conversation = conversation_turn.c.conversation_id == conversation_id
            answers = sa.select(conversation_turn.c.request_id).where(of_conversation)
            connection.execute(sa.delete(feedback).where(feedback.c.request_id.in_(answers)))
            connection.execute(sa.delete(conversation_turn).where(of_conversation))
            connection.execute(sa.delete(asked_question).where(asked_question.c.conversation_id == conversation_id))
            connection.execute(sa.delete(conversation).where(mine))
            forget_answers(connection, principal.tenant_id)


def insert_conversation(
    connection: sa.Connection,
    principal: Principal,
    *,
    now: float,
    title: str | None = None,
    metadata: Metadata | None = None,
    listed: bool = True,
) -> str:
    """Insert a conversation without turns in a write transaction, and return its id; `listed` False: in no list."""
    ensure_user(connection, principal.tenant_id, principal.user_id, now=now)
    made = new_id("conv")
    connection.execute(
        sa.insert(conversation).values(
            id=made,
            tenant_id=principal.tenant_id,
            user_id=principal.user_id,
            key_id=reach_of(principal).key_id,
            title=title,
            metadata=dict(metadata or {}),
            created_at=now,
            updated_at=now,
            listed=listed,
        )
    )
    return made


def within(reach: Reach) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions on `conversation`: it is within a caller's reach."""
    return rows_within(reach, conversation)


def _listed(principal: Principal, owner: Owner) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of the conversations that a caller's list shows."""
    own = conversation.c.user_id == principal.user_id
    of_owner: dict[Owner, tuple[sa.ColumnElement[bool], ...]] = {"anybody": (), "me": (own,), "others": (~own,)}
    return *within(reach_of(principal)), conversation.c.listed, *of_owner[owner]


def _page(
    connection: sa.Connection, query: sa.Select[Any], limit: int, cursor: str | None
) -> tuple[tuple[Conversation, ...], str | None]:
    """A page of conversations, pinned ones and then the newest first."""
    order = conversation.c.pinned, conversation.c.created_at, conversation.c.id
    if cursor is not None:
        pinned, created_at, last_id = decode_cursor(cursor, bool, float, str)
        query = query.where(sa.tuple_(*order) < sa.tuple_(sa.literal(pinned, sa.Boolean), created_at, last_id))
    rows = connection.execute(query.order_by(*(column.desc() for column in order)).limit(limit + 1))
    return cut(tuple(map(_to_conversation, rows)), limit, lambda row: (row.pinned, row.created_at, row.id))


def _readable(reach: Reach) -> sa.ColumnElement[bool]:
    own = sa.and_(*within(reach))
    if reach.key_id is not None:
        return own
    return sa.or_(own, sa.and_(conversation.c.tenant_id == reach.tenant_id, conversation.c.shared))


def _find(connection: sa.Connection, conversation_id: str, *conditions: sa.ColumnElement[bool]) -> Conversation:
    query = _counted.where(conversation.c.id == conversation_id, *conditions)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such conversation.")
    return _to_conversation(row)


def _find_own(connection: sa.Connection, conversation_id: str, reach: Reach) -> Conversation:
    try:
        return _find(connection, conversation_id, *within(reach))
    except NotFound:
        _find(connection, conversation_id, _readable(reach))
        raise Forbidden("This conversation belongs to another user; it is shared with you for reading only.") from None


def _to_conversation(row: sa.Row[Any]) -> Conversation:
    return Conversation(
        id=row.id,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        key_id=row.key_id,
        title=row.title,
        metadata=row.metadata,
        created_at=row.created_at,
        updated_at=row.updated_at,
        turns=row.turns,
        shared=row.shared,
        user_name=row.user_name or "",
        pinned=row.pinned,
        folder=row.folder,
        unanswered=row.unanswered,
    )
