"""Watched questions and their events. They belong to the user who made them, and the key that made one pays."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from app.db.idempotency import forget_answers, note_effect
from app.db.paging import Cut, cut, decode_cursor
from app.db.session import Database
from app.db.tables.documents import app_user
from app.db.tables.watches import watch, watch_event
from app.db.tenants import ensure_user, within
from app.db.values import KEEP, Keep, require_text
from app.errors import Conflict, Forbidden, InvalidRequest, NotFound
from app.ids import new_id
from app.reach import reach_of
from app.types import Principal

_CHANGED_AT = (
    sa.select(sa.func.max(watch_event.c.created_at))
    .where(watch_event.c.watch_id == watch.c.id)
    .scalar_subquery()
    .label("changed_at")
)

WatchState: TypeAlias = Literal["waiting", "current", "no_access", "over_budget", "failing"]
WatchPeriod: TypeAlias = Literal["day", "month"]


@dataclass(frozen=True, slots=True)
class WatchScope:
    """The scope of a watched question, as the request named it; None is no limit."""

    collection_ids: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    filter: Mapping[str, object] | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "WatchScope":
        """The scope of a row."""
        collections, documents = stored["collection_ids"], stored["document_ids"]
        return cls(
            None if collections is None else tuple(collections),
            None if documents is None else tuple(documents),
            stored["filter"],
        )

    def as_json(self) -> dict[str, object]:
        """The scope in JSON types."""
        collections, documents = self.collection_ids, self.document_ids
        return {
            "collection_ids": None if collections is None else list(collections),
            "document_ids": None if documents is None else list(documents),
            "filter": self.filter,
        }


@dataclass(frozen=True, slots=True)
class WatchBudget:
    """The most tokens that a watch begins to use in each day or month of the reporting zone."""

    tokens: int
    period: WatchPeriod


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watched question. Times are Unix seconds, `used_since` microseconds.

    Attributes:
        key_id: The key that made it and pays.
        every_s: Seconds between two looks; None where it is looked at when its scope changes, and once a day.
        on_change: Whether it is looked at when its scope changes.
        used_tokens: Tokens used in the period of its budget that began at `used_since`.
        state_detail: Why it was not looked at, in one sentence; None where it was.
        due_at: When it is looked at next; None while it is paused.
        presented: The passages of the last answer: document, version, first character, and one past the last.
        answer: The last answer, in JSON types; None before the first.
        looked_at: When its passages were looked for last.
        changed_at: When its evidence changed last; None where it has not, or was not asked for.
    """

    id: str
    tenant_id: str
    user_id: str
    key_id: str
    question: str
    scope: WatchScope
    every_s: int | None
    on_change: bool
    budget: WatchBudget | None
    used_tokens: int
    used_since: int
    paused: bool
    state: WatchState
    state_detail: str | None
    due_at: float | None
    failures: int
    presented: tuple[tuple[str, int, int, int], ...] | None
    answer: Mapping[str, Any] | None
    looked_at: float | None
    created_at: float
    updated_at: float
    changed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """The evidence of a watched question changed. `before` and `after` are answers, all in JSON types."""

    id: str
    watch_id: str
    question: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    differences: tuple[Mapping[str, Any], ...]
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTerms:
    """The fields of a watch that a caller sets; `KEEP` leaves a field as it is, or at its default."""

    question: str | Keep = KEEP
    scope: WatchScope | Keep = KEEP
    every_s: int | Keep | None = KEEP
    on_change: bool | Keep = KEEP
    budget: WatchBudget | Keep | None = KEEP
    paused: bool | Keep = KEEP

    @property
    def values(self) -> dict[str, Any]:
        """The columns that are set."""
        names = ("question", "every_s", "on_change", "paused")
        found = {name: value for name in names if (value := getattr(self, name)) is not KEEP}
        if not isinstance(self.scope, Keep):
            found["scope"] = self.scope.as_json()
        if not isinstance(self.budget, Keep):
            found["budget_tokens"] = None if self.budget is None else self.budget.tokens
            found["budget_period"] = None if self.budget is None else self.budget.period
        return found


class WatchRepository:
    """Watches of all tenants. They are accessible as conversations are: to their user and to administrators.

    A key that is limited to collections accesses only those that it made. Others' watches an administrator reads,
    pauses and deletes; the rest is their user's, whose key pays.

    Example:
        >>> watches = WatchRepository(database)
        >>> made = watches.create(principal, WatchTerms(question="What is the fee?", on_change=True))
        >>> watches.events(made.id, principal=principal, limit=10)
        ((), None)
    """

    def __init__(
        self,
        database: Database,
        *,
        most: int = 20,
        least_s: int = 300,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A key may have `most` watches; `least_s` is the least number of seconds between two looks at one."""
        self._database = database
        self._most = most
        self._least_s = least_s
        self._clock = clock

    def create(self, principal: Principal, terms: WatchTerms) -> Watch:
        """A new watch, which is due at once.

        Raises:
            InvalidRequest: Its question cannot be stored, or its interval is too short, or nothing says when to look.
            Conflict: The key has as many watches as one may have.
        """
        values = {"every_s": None, "on_change": False, "paused": False, "scope": WatchScope().as_json(), **terms.values}
        self._require(values)
        made, now = new_id("watch"), self._clock()
        its = watch.c.tenant_id == principal.tenant_id, watch.c.user_id == principal.user_id
        with self._database.write() as connection:
            ensure_user(connection, principal.tenant_id, principal.user_id, now=now)
            owner = app_user.c.tenant_id == principal.tenant_id, app_user.c.id == principal.user_id
            connection.execute(sa.select(app_user.c.id).where(*owner).with_for_update())  # two count one after another
            of_key = sa.select(sa.func.count()).where(*its, watch.c.key_id == principal.key_id)
            if connection.execute(of_key).scalar_one() >= self._most:
                raise Conflict(f"A key may have {self._most} watches; delete one first.")
            connection.execute(
                sa.insert(watch).values(
                    id=made,
                    tenant_id=principal.tenant_id,
                    user_id=principal.user_id,
                    key_id=principal.key_id,
                    due_at=None if values["paused"] else now,
                    created_at=now,
                    updated_at=now,
                    **values,
                )
            )
            note_effect(connection)
            return _find(connection, made, principal)

    def list(self, principal: Principal, *, limit: int, cursor: str | None = None) -> Cut[Watch]:
        """A page of watches, newest first, and the cursor of the next page."""
        query = sa.select(watch, _CHANGED_AT).where(*within(reach_of(principal), watch))
        if cursor is not None:
            created_at, last_id = decode_cursor(cursor, float, str)
            query = query.where(sa.tuple_(watch.c.created_at, watch.c.id) < sa.tuple_(created_at, last_id))
        query = query.order_by(watch.c.created_at.desc(), watch.c.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(map(to_watch, connection.execute(query)))
        return cut(found, limit, lambda one: (one.created_at, one.id))

    def get(self, watch_id: str, *, principal: Principal) -> Watch:
        """The watch.

        Raises:
            NotFound: There is no such watch for this caller.
        """
        with self._database.read() as connection:
            return _find(connection, watch_id, principal)

    def update(self, watch_id: str, terms: WatchTerms, *, principal: Principal) -> Watch:
        """Change what is given. A run under way is thrown away; another question or scope begins without an answer.

        Raises:
            NotFound: There is no such watch for this caller.
            Forbidden: It is another user's, and more than `paused` is to change.
            InvalidRequest: As of `create`.
        """
        values, now = terms.values, self._clock()
        with self._database.write() as connection:
            connection.execute(sa.select(watch.c.id).where(watch.c.id == watch_id).with_for_update())
            found = _find(connection, watch_id, principal)
            if found.user_id != principal.user_id and set(values) - {"paused"}:
                raise Forbidden("This watch belongs to another user; an administrator may pause or delete it.")
            self._require({"every_s": found.every_s, "on_change": found.on_change, **values})
            if not values:
                return found
            if {"question", "scope"} & set(values):
                values |= {"presented": None, "answer": None, "state": "waiting", "state_detail": None, "failures": 0}
            due = now if found.looked_at is None else max(now, found.looked_at + self._least_s)
            paused = values.get("paused", found.paused)
            connection.execute(
                sa.update(watch)
                .where(watch.c.id == watch_id)
                .values(due_at=None if paused else due, boot_id=None, claim=watch.c.claim + 1, updated_at=now, **values)
            )
            return _find(connection, watch_id, principal)

    def delete(self, watch_id: str, *, principal: Principal) -> None:
        """Delete it with its events; a run under way is thrown away.

        Raises:
            NotFound: There is no such watch for this caller.
        """
        with self._database.write() as connection:
            connection.execute(sa.select(watch.c.id).where(watch.c.id == watch_id).with_for_update())
            found = _find(connection, watch_id, principal)
            connection.execute(sa.delete(watch_event).where(watch_event.c.watch_id == watch_id))
            connection.execute(sa.delete(watch).where(watch.c.id == watch_id))
            forget_answers(connection, found.tenant_id)

    def events(self, watch_id: str, *, principal: Principal, limit: int, cursor: str | None = None) -> Cut[WatchEvent]:
        """A page of the watch's events, newest first, and the cursor of the next page.

        Raises:
            NotFound: There is no such watch for this caller.
        """
        order = watch_event.c.created_at, watch_event.c.id
        query = sa.select(watch_event).where(watch_event.c.watch_id == watch_id)
        if cursor is not None:
            created_at, last_id = decode_cursor(cursor, float, str)
            query = query.where(sa.tuple_(*order) < sa.tuple_(created_at, last_id))
        query = query.order_by(*(column.desc() for column in order)).limit(limit + 1)
        with self._database.read() as connection:
            _find(connection, watch_id, principal)
            found = tuple(map(to_event, connection.execute(query)))
        return cut(found, limit, lambda one: (one.created_at, one.id))

    def _require(self, values: Mapping[str, Any]) -> None:
        if "question" in values:
            require_text(values["question"], param="question")
        every_s = values["every_s"]
        if every_s is None and not values["on_change"]:
            raise InvalidRequest("A watch needs every_s, or on_change as true.", param="every_s")
        if every_s is not None and every_s < self._least_s:
            raise InvalidRequest(f"A watch is looked at every {self._least_s} seconds at most.", param="every_s")


def _find(connection: sa.Connection, watch_id: str, principal: Principal) -> Watch:
    row = connection.execute(
        sa.select(watch, _CHANGED_AT).where(watch.c.id == watch_id, *within(reach_of(principal), watch))
    ).one_or_none()
    if row is None:
        raise NotFound("There is no such watch.")
    return to_watch(row)


def to_watch(row: sa.Row[Any]) -> Watch:
    """A watch from its row."""
    presented = row.presented
    return Watch(
        id=row.id,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        key_id=row.key_id,
        question=row.question,
        scope=WatchScope.of(row.scope),
        every_s=row.every_s,
        on_change=row.on_change,
        budget=None if row.budget_tokens is None else WatchBudget(row.budget_tokens, row.budget_period),
        used_tokens=row.used_tokens,
        used_since=row.used_since,
        paused=row.paused,
        state=row.state,
        state_detail=row.state_detail,
        due_at=row.due_at,
        failures=row.failures,
        presented=None if presented is None else tuple((one[0], one[1], one[2], one[3]) for one in presented),
        answer=row.answer,
        looked_at=row.looked_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        changed_at=row._mapping.get("changed_at"),  # noqa: SLF001 - SQLAlchemy's public name begins so
    )


def to_event(row: sa.Row[Any]) -> WatchEvent:
    """An event from its row."""
    return WatchEvent(
        id=row.id,
        watch_id=row.watch_id,
        question=row.question,
        before=row.before,
        after=row.after,
        differences=tuple(row.differences),
        created_at=row.created_at,
    )
