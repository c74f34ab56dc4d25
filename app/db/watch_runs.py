"""Runs of watched questions: claims, which are fenced, and what a run stores (docs/adr/0098, 0122)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.deliveries import Deliveries
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.watches import watch, watch_event
from app.db.watches import Watch, WatchEvent, WatchState, to_event, to_watch
from app.ids import new_id

DAY_S = 86_400
"""Seconds after which a watch without an interval is looked at although nothing of its scope changed."""


@dataclass(frozen=True, slots=True)
class ClaimedWatch:
    """A watch that a process runs, under a number that rises with each claim and each change of the watch."""

    watch: Watch
    boot_id: str
    claim: int


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A difference of evidence, in JSON types. `deliver` says whether it waits for its delivery to the webhook."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    differences: Sequence[Mapping[str, Any]]
    deliver: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLook:
    """The findings of a run.

    Attributes:
        state: Of the watch from now on; `detail` says why it was not looked at.
        looked: Whether its passages were looked for.
        stopped: Whether the run was ended before it found anything; the watch stays due, and as it was.
        failures: Runs that failed in a row, this one included.
        after_s: Seconds until the next try, where it is not the schedule that says so.
        used_tokens: Of the period of its budget that began at `used_since`, with those of this run.
        presented: The passages of `answer`; None keeps both.
        answer: The new answer, in JSON types.
        event: What differs from the answer before; None where nothing does.
    """

    state: WatchState
    detail: str | None = None
    looked: bool = False
    stopped: bool = False
    failures: int = 0
    after_s: float | None = None
    used_tokens: int = 0
    used_since: int = 0
    presented: Sequence[tuple[str, int, int, int]] | None = None
    answer: Mapping[str, Any] | None = None
    event: NewEvent | None = None


class WatchRuns:
    """Hands out watches that are due to one process each, and stores what it found.

    Example:
        >>> claimed = runs.claim()
        >>> runs.finish(claimed, WatchLook(state="current", looked=True))
        True
    """

    def __init__(
        self,
        database: Database,
        own: OwnProcess,
        *,
        events_kept: int = 100,
        least_s: int = 300,
        may_claim: Callable[[sa.Connection], bool] = lambda _: True,
    ) -> None:
        """Of each watch the newest `events_kept` events are kept; two looks are at least `least_s` seconds apart.

        `may_claim` says whether this process still lives, inside the transaction that claims.
        """
        self._database = database
        self._own = own
        self._events_kept = events_kept
        self._least_s = least_s
        self._may_claim = may_claim

    def claim(self) -> ClaimedWatch | None:
        """Claim the watch that has been due for longest; None where none is due.

        One that a gone process has claimed is due again, and so is one that this process claimed before: it runs one
        at a time, so that run has ended without a result.

        Raises:
            StoreUnavailable, StorageFull: None was claimed.
        """
        due = (
            sa.select(watch)
            .where(watch.c.due_at <= self._own.clock(), self._own.free(watch.c.boot_id))
            .order_by(watch.c.due_at, watch.c.id)
            .limit(1)
        )
        with self._database.read() as connection:  # most looks find none, and writers wait for each other
            if connection.execute(due.with_only_columns(watch.c.id)).first() is None:
                return None
        with self._database.write_unflushed() as connection:
            if not self._may_claim(connection):
                return None
            row = connection.execute(due.with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            taken = {"boot_id": self._own.boot_id, "claim": row.claim + 1, "changed": False}
            connection.execute(sa.update(watch).where(watch.c.id == row.id).values(**taken))
        return ClaimedWatch(to_watch(row), self._own.boot_id, row.claim + 1)

    def finish(self, claimed: ClaimedWatch, look: WatchLook) -> bool:
        """Store what a run found and when the next one is due; False where the watch was changed, deleted or taken.

        Then nothing is stored. The event is written in the same transaction, so each difference is told once.

        Raises:
            StoreUnavailable, StorageFull: Nothing was stored; the watch is due again.
        """
        now, its = self._own.clock(), claimed.watch
        after = look.after_s if look.after_s is not None else its.every_s if its.every_s is not None else DAY_S
        values: dict[str, Any] = {
            "state": look.state,
            "state_detail": look.detail,
            "failures": look.failures,
            "boot_id": None,
            "due_at": sa.case((watch.c.changed, now + min(after, self._least_s)), else_=now + after),
            "used_tokens": look.used_tokens,
            "used_since": look.used_since,
        }
        if look.stopped:
            values = {name: values[name] for name in ("boot_id", "used_tokens", "used_since")}
        if look.looked:
            values["looked_at"] = now
        if look.presented is not None and look.answer is not None:
            values |= {"presented": [list(one) for one in look.presented], "answer": dict(look.answer)}
        with self._database.write() as connection:
            if not connection.execute(sa.update(watch).where(*_held(claimed)).values(**values)).rowcount:
                return False
            if look.event is not None:
                self._write(connection, claimed, look.event, now=now)
        return True

    def _write(self, connection: sa.Connection, claimed: ClaimedWatch, event: NewEvent, *, now: float) -> None:
        its = claimed.watch
        connection.execute(
            sa.insert(watch_event).values(
                id=new_id("event"),
                watch_id=its.id,
                question=its.question,
                before=dict(event.before),
                after=dict(event.after),
                differences=[dict(one) for one in event.differences],
                created_at=now,
                delivery="waiting" if event.deliver else "none",
                next_attempt_at=now if event.deliver else None,
            )
        )
        kept = (
            sa.select(watch_event.c.id)
            .where(watch_event.c.watch_id == its.id)
            .order_by(watch_event.c.created_at.desc(), watch_event.c.id.desc())
            .limit(self._events_kept)
        )
        ids = connection.execute(kept).scalars().all()
        connection.execute(sa.delete(watch_event).where(watch_event.c.watch_id == its.id, watch_event.c.id.not_in(ids)))


def _held(claimed: ClaimedWatch) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        watch.c.id == claimed.watch.id,
        watch.c.boot_id == claimed.boot_id,
        watch.c.claim == claimed.claim,
    )


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """An event that is to be posted to the webhook, after `attempts` that failed."""

    event: WatchEvent
    tenant_id: str
    attempts: int


class WatchDeliveries:
    """Events that wait to be delivered to the installation's webhook.

    Example:
        >>> for waiting in deliveries.due(limit=20):
        ...     if deliveries.take(waiting):
        ...         deliveries.note(waiting, delivered=True)
    """

    def __init__(self, database: Database, *, clock: Callable[[], float], claimant: str | None = None) -> None:
        """`clock` gives Unix seconds; `claimant` is this process, of several that share the database, None if alone."""
        self._database = database
        self._deliveries = Deliveries(database, watch_event, claimant=claimant)
        self._clock = clock

    def due(self, *, limit: int) -> tuple[WaitingEvent, ...]:
        """At most `limit` events that are due and that no other process delivers, the longest waiting first."""
        query = (
            sa.select(watch_event, watch.c.tenant_id)
            .join(watch, watch.c.id == watch_event.c.watch_id)
            .where(watch_event.c.next_attempt_at <= self._clock(), self._deliveries.free())
            .order_by(watch_event.c.next_attempt_at, watch_event.c.id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(WaitingEvent(to_event(row), row.tenant_id, row.attempts) for row in connection.execute(query))

    def take(self, waiting: WaitingEvent) -> bool:
        """Take a due event before it is delivered; False where another process did.

        Raises:
            StoreUnavailable, StorageFull: Nobody has taken it.
        """
        return self._deliveries.take(watch_event.c.id == waiting.event.id, attempts=waiting.attempts)

    def note(self, waiting: WaitingEvent, *, delivered: bool, again_s: float | None = None) -> None:
        """Note an attempt: it was delivered, or is tried again in `again_s` seconds, or never.

        Raises:
            StoreUnavailable, StorageFull: It is delivered once more.
        """
        state = "delivered" if delivered else "failed" if again_s is None else "waiting"
        self._deliveries.note(
            watch_event.c.id == waiting.event.id,
            attempts=waiting.attempts + 1,
            delivery=state,
            next_attempt_at=None if again_s is None else self._clock() + again_s,
        )
