"""The counts of limits in the database that processes share: sliding windows, and seats of requests that run.

A window is that of `app.admission.sliding_windows`: time is cut into grains of a tenth of a second, and a window is the
sum of the last 601. The clock is the database's, read once the counters are locked. Whoever adds to a counter holds its
lock from before it looks until its transaction ends: so what it looked at is all there is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.admission.sliding_windows import WINDOW_S
from app.db.dialect import clock_of, locked_clock, upsert
from app.db.presence import Gone
from app.db.tables.access import rate_grain, rate_seat

_GRAIN_US = 100_000
_GRAINS = WINDOW_S * 1_000_000 // _GRAIN_US
_KEPT_GRAINS = 2 * _GRAINS  # older ones are in no window, and nobody corrects them

_NAMES: sa.BindParameter[str] = sa.bindparam("names", expanding=True)
_OLDEST: sa.BindParameter[int] = sa.bindparam("oldest")
_USED = sa.union_all(
    sa.select(
        rate_grain.c.counter,
        sa.func.sum(rate_grain.c.amount).label("used"),
        sa.func.min(rate_grain.c.grain).label("oldest"),
    )
    .where(rate_grain.c.counter.in_(_NAMES), rate_grain.c.grain >= _OLDEST)
    .group_by(rate_grain.c.counter),
    sa.select(rate_seat.c.counter, sa.func.count(), sa.null())
    .where(rate_seat.c.counter.in_(_NAMES))
    .group_by(rate_seat.c.counter),
)
_FREED = (
    sa.select(rate_grain.c.grain, sa.func.sum(rate_grain.c.amount).over(order_by=rate_grain.c.grain).label("freed"))
    .where(rate_grain.c.counter == sa.bindparam("name"), rate_grain.c.grain >= _OLDEST)
    .subquery()
)
_FREE_AFTER = sa.select(sa.func.min(_FREED.c.grain)).where(_FREED.c.freed >= sa.bindparam("excess"))
_ADD = upsert(rate_grain, change=lambda new: {"amount": rate_grain.c.amount + new.amount})
_CORRECT = (
    sa.update(rate_grain)
    .where(rate_grain.c.counter == sa.bindparam("name"), rate_grain.c.grain == sa.bindparam("at"))
    .values(amount=rate_grain.c.amount + sa.bindparam("change"))
)
_SIT = sa.insert(rate_seat)
_RISE = sa.delete(rate_seat).where(rate_seat.c.seat_id.in_(sa.bindparam("seats", expanding=True)))


@dataclass(frozen=True, slots=True)
class Counted:
    """How much of a counter is used, and in how many seconds its oldest amount leaves the window; 0.0 for seats."""

    used: int = 0
    reset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """Counters at one moment. `micros` is the moment in Unix microseconds, by the database's clock."""

    micros: int
    counted: Mapping[str, Counted]

    @property
    def grain(self) -> int:
        """The grain of what is added now."""
        return self.micros // _GRAIN_US

    @property
    def oldest(self) -> int:
        """The oldest grain in the window."""
        return self.grain - _GRAINS

    def of(self, counter: str) -> Counted:
        """What is counted under a name."""
        return self.counted.get(counter, _NOTHING)

    def leaves_s(self, grain: int) -> float:
        """Seconds until a grain leaves the window."""
        return ((grain + 1 + _GRAINS) * _GRAIN_US - self.micros) / 1_000_000


_NOTHING = Counted()


class RateRows:
    """Counters in transactions of the caller.

    Example:
        >>> rows = RateRows()
        >>> with database.write() as connection:
        ...     look = rows.look_in(connection, ["key/t1/k1/requests"], locks=["key/t1/k1"])
        ...     if look.of("key/t1/k1/requests").used < 60:
        ...         rows.add_in(connection, ["key/t1/k1/requests"], 1, grain=look.grain)
    """

    def __init__(self, locked: Callable[[sa.Connection, Sequence[str]], float] = locked_clock) -> None:
        """`locked` takes locks in their order and returns the Unix time after the last; only tests have another."""
        self._locked = locked

    def look_in(self, connection: sa.Connection, counters: Sequence[str], *, locks: Sequence[str]) -> Look:
        """Take `locks`, those of the counters that are added to next, and read `counters`."""
        micros = round(self._locked(connection, [f"rate:{name}" for name in locks]) * 1_000_000)
        look = Look(micros, {})
        found = connection.execute(_USED, {"names": list(counters), "oldest": look.oldest})
        counted = {
            row.counter: Counted(int(row.used), 0.0 if row.oldest is None else look.leaves_s(row.oldest))
            for row in found
        }
        return Look(micros, counted)

    def seconds_until(self, connection: sa.Connection, counter: str, amount: int, *, limit: int, look: Look) -> float:
        """Seconds until `amount` fits under `limit` if nothing else is taken; the whole window if it never fits."""
        excess = look.of(counter).used + amount - limit
        if excess <= 0:
            return 0.0
        free_after = connection.execute(_FREE_AFTER, {"name": counter, "oldest": look.oldest, "excess": excess})
        grain = free_after.scalar_one()
        return float(WINDOW_S) if grain is None else look.leaves_s(grain)

    def add_in(self, connection: sa.Connection, counters: Iterable[str], amount: int, *, grain: int) -> None:
        """Add to each counter in turn."""
        rows = [{"counter": counter, "grain": grain, "amount": amount} for counter in counters]
        if rows:
            connection.execute(_ADD.on(connection), rows)

    def correct_in(self, connection: sa.Connection, counters: Iterable[str], change: int, *, grain: int) -> None:
        """Change what was added before, in the same order; no effect once the grain has left the window."""
        rows = [{"name": counter, "at": grain, "change": change} for counter in counters]
        if rows and change:
            connection.execute(_CORRECT, rows)

    def sit_in(self, connection: sa.Connection, counters: Iterable[str], *, seat_id: str, boot_id: str) -> None:
        """Take a seat under each counter."""
        rows = [{"seat_id": seat_id, "counter": counter, "boot_id": boot_id} for counter in counters]
        if rows:
            connection.execute(_SIT, rows)

    def rise_in(self, connection: sa.Connection, seat_ids: Iterable[str]) -> None:
        """Give seats back; those that a burial took already are no error."""
        connection.execute(_RISE, {"seats": list(seat_ids)})


def sweep_in(connection: sa.Connection, gone: Gone, *, clock: Callable[[sa.Connection], float] = clock_of) -> int:
    """Give back the seats of processes that are gone, and delete old grains; returns how many seats.

    Rows that another transaction deletes at this moment are left to it.
    """
    seats = sa.select(rate_seat.c.seat_id, rate_seat.c.counter).where(gone(rate_seat.c.boot_id))
    freed = connection.execute(
        sa.delete(rate_seat).where(
            sa.tuple_(rate_seat.c.seat_id, rate_seat.c.counter).in_(seats.with_for_update(skip_locked=True))
        )
    ).rowcount
    oldest = round(clock(connection) * 1_000_000) // _GRAIN_US - _KEPT_GRAINS
    grains = sa.select(rate_grain.c.counter, rate_grain.c.grain).where(rate_grain.c.grain < oldest)
    connection.execute(
        sa.delete(rate_grain).where(
            sa.tuple_(rate_grain.c.counter, rate_grain.c.grain).in_(grains.with_for_update(skip_locked=True))
        )
    )
    return freed
