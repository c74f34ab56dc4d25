"""Compares the ledger with the engine's own counters, by process and model.

The comparison is exact for a process that ended cleanly and for an idle one. While calls run, or after a process was
killed, it checks bounds: the last calls of a killed process are billed as of their checkpoints, and its counters are as
old as their last flush.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from app.db.presence import Gone
from app.db.tables.ledger import usage_event
from app.db.tables.rollups import engine_counter
from app.types import Operation, UsageStatus
from app.usage.reconciliation.checks import Check
from app.usage.reconciliation.engine_counters import EngineCounters, counters_of
from generation.types import EngineStats

PREFILL = "engine_prefill"
DECODE = "engine_decode"

_GENERATING = tuple(operation.value for operation in Operation if operation.generates)
_LAG = 60_000_000  # rows of the last minute may still be uncommitted: they are summed again in each run
_STEP = 3_600_000_000  # the clock may have been set back since a process recorded its start

Key = tuple[str, str]
"""Process and model."""


@dataclass(frozen=True, slots=True)
class Billed:
    """The sums over the settled calls of a process and model, in tokens.

    `recovered_input` is the part of `prefill` of calls whose process died, billed as reserved. `unnoted` is the most
    that these calls can have generated after their last checkpoint.
    """

    calls: int = 0
    prefill: int = 0
    decode: int = 0
    recovered: int = 0
    recovered_input: int = 0
    unnoted: int = 0

    def plus(self, other: "Billed") -> "Billed":
        """The sum of both."""
        return Billed(
            self.calls + other.calls,
            self.prefill + other.prefill,
            self.decode + other.decode,
            self.recovered + other.recovered,
            self.recovered_input + other.recovered_input,
            self.unnoted + other.unnoted,
        )


@dataclass(frozen=True, slots=True)
class Open:
    """The tokens that the running calls of a process and model have reserved."""

    calls: int = 0
    prefill: int = 0
    decode: int = 0


@dataclass(slots=True)
class LedgerTally:
    """Sums of the ledger by process and model, kept between runs, up to `until` (Unix microseconds)."""

    until: int | None = None
    sums: dict[Key, Billed] = field(default_factory=dict)


def engine_checks(
    connection: sa.Connection,
    *,
    since: int,
    now: int,
    tally: LedgerTally,
    current: EngineCounters | None,
    before: EngineStats,
    gone: Gone,
) -> Iterator[Check]:
    """Two checks for every process that ran after `since`, and one for calls that cannot be compared.

    Args:
        connection: A read transaction, begun after `before` was read.
        since: Unix microseconds.
        now: Unix microseconds.
        tally: The sums of earlier runs, which are continued; an empty one reads all calls since the first of those
            processes began.
        current: The counters of this process; None if its engine has none.
        before: The stats of its engine before the transaction began; ignored if it has none.
        gone: Which processes are.
    """
    elsewhere = set(
        connection.execute(sa.select(engine_counter.c.boot_id).where(sa.not_(gone(engine_counter.c.boot_id)))).scalars()
    )
    rows = counters_of(connection, since=since)
    begin = tally.until
    if begin is None:
        begin = min((row.started_at for row in rows), default=since) - _STEP
    upto = max(begin, now - _LAG)
    recent = _billed(connection, upto, None)
    for key, billed in _billed(connection, begin, upto).items():
        tally.sums[key] = tally.sums.get(key, Billed()).plus(billed)
    tally.until = upto
    sums = {
        key: tally.sums.get(key, Billed()).plus(recent.get(key, Billed())) for key in tally.sums.keys() | recent.keys()
    }
    running = _open(connection)
    after = current.stats() if current is not None else before
    counted: set[Key] = set()
    for row in rows:
        key = (row.boot_id, row.model_id)
        counted.add(key)
        billed, still = sums.get(key, Billed()), running.get(key, Open())
        if current is not None and key == (current.boot_id, current.model):
            yield from _of_this_process(key, billed, still, before, after)
        elif row.closed:
            yield from _of_an_ended_process(key, row, billed, still)
        elif row.boot_id in elsewhere:
            yield from _of_a_living_process(key, row, billed, still)
        else:
            yield from _of_a_killed_process(key, row, billed)
    uncounted = sum(billed.calls for key, billed in sums.items() if key not in counted)
    if uncounted:
        yield Check(
            name="engine_uncounted",
            ok=True,
            expected=None,
            found=None,
            detail=f"Not compared: {uncounted} calls of engines that count elsewhere, or before counters existed.",
        )


def _of_this_process(key: Key, billed: Billed, still: Open, before: EngineStats, after: EngineStats) -> Iterator[Check]:
    """Check bounds that meet when the engine is idle: it counts a call after it is reserved and before it settles."""
    detail = f"{_named(key)}, which runs: {still.calls} calls are open."
    for name, low, engine, ledger, reserved in (
        (PREFILL, before.prompt_tokens, after.prompt_tokens, billed.prefill, still.prefill),
        (DECODE, before.decode_tokens, after.decode_tokens, billed.decode, still.decode),
    ):
        ok = ledger <= engine and low <= ledger + reserved
        yield Check(name=name, ok=ok, expected=engine, found=ledger, detail=detail)


def _of_a_living_process(key: Key, row: sa.Row[Any], billed: Billed, still: Open) -> Iterator[Check]:
    """Check one bound: the counters that another process wrote some seconds ago are of settled and of open calls."""
    detail = (
        f"{_named(key)}, which runs beside this one: {still.calls} calls are open; its counters are some seconds old."
    )
    for name, engine, ledger, reserved in (
        (PREFILL, row.prefill_tokens, billed.prefill, still.prefill),
        (DECODE, row.decode_tokens, billed.decode, still.decode),
    ):
        yield Check(name=name, ok=engine <= ledger + reserved, expected=engine, found=ledger, detail=detail)


def _of_an_ended_process(key: Key, row: sa.Row[Any], billed: Billed, still: Open) -> Iterator[Check]:
    what = f"{_named(key)}, which ended cleanly: "
    if still.calls:
        for name in (PREFILL, DECODE):
            waiting = f"not compared, {still.calls} settlements wait for the database."
            yield Check(name=name, ok=True, expected=None, found=None, detail=what + waiting)
    elif billed.recovered:
        found = f"{billed.recovered} calls were left open, and are billed what is known of them."
        prefill_ok = billed.prefill - billed.recovered_input <= row.prefill_tokens <= billed.prefill
        decode_ok = billed.decode <= row.decode_tokens <= billed.decode + billed.unnoted
        for name, ok, engine, ledger in (
            (PREFILL, prefill_ok, row.prefill_tokens, billed.prefill),
            (DECODE, decode_ok, row.decode_tokens, billed.decode),
        ):
            yield Check(name=name, ok=ok, expected=engine, found=ledger, detail=what + found)
    else:
        yield _exact(PREFILL, row.prefill_tokens, billed.prefill, what + "every call counts.")
        yield _exact(DECODE, row.decode_tokens, billed.decode, what + "every call counts.")


def _of_a_killed_process(key: Key, row: sa.Row[Any], billed: Billed) -> Iterator[Check]:
    what = f"{_named(key)}, which was killed with {billed.recovered} calls open: at least its last counters, "
    for name, engine, ledger, unnoted in (
        (PREFILL, row.prefill_tokens, billed.prefill, 0),
        (DECODE, row.decode_tokens, billed.decode, billed.unnoted),
    ):
        detail = f"{what}less what those calls may have generated unnoted ({unnoted} at most)."
        yield Check(name=name, ok=engine <= ledger + unnoted, expected=engine, found=ledger, detail=detail)


def _exact(name: str, engine: int, ledger: int, detail: str) -> Check:
    return Check(name=name, ok=engine == ledger, expected=engine, found=ledger, detail=detail)


def _named(key: Key) -> str:
    return f"{key[0]}, {key[1]}"


def _billed(connection: sa.Connection, start: int, end: int | None) -> Mapping[Key, Billed]:
    """The sums over the generating calls settled in `[start, end)`."""
    event = usage_event.c
    fresh = event.input_tokens - event.input_cached_tokens
    recovered = event.status == UsageStatus.RECOVERED

    def sum_of(amount: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(amount), 0)

    def if_recovered(amount: Any) -> sa.ColumnElement[int]:
        return sum_of(sa.case((recovered, amount), else_=0))

    query = (
        sa.select(
            event.boot_id,
            event.model_id,
            sa.func.count(),
            sum_of(fresh),
            sum_of(event.output_tokens),
            if_recovered(1),
            if_recovered(fresh),
            if_recovered(event.max_output_tokens - event.output_tokens),
        )
        .where(event.operation.in_(_GENERATING), event.settled_at >= start)
        .group_by(event.boot_id, event.model_id)
    )
    if end is not None:
        query = query.where(event.settled_at < end)
    return {(row[0], row[1]): Billed(*map(int, row[2:])) for row in connection.execute(query)}


def _open(connection: sa.Connection) -> Mapping[Key, Open]:
    event = usage_event.c
    query = (
        sa.select(
            event.boot_id,
            event.model_id,
            sa.func.count(),
            sa.func.sum(event.input_tokens),
            sa.func.sum(event.max_output_tokens),
        )
        .where(event.status == UsageStatus.RESERVED.value, event.operation.in_(_GENERATING))
        .group_by(event.boot_id, event.model_id)
    )
    return {(row[0], row[1]): Open(*map(int, row[2:])) for row in connection.execute(query)}
