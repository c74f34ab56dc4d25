"""`python -m tests.bench.service.shared_limits`: what counting in the database of several processes adds to an ask.

One caller at a time, then sixteen of one tenant at once, against PostgreSQL on the same machine: with one limit, with
all six, and with windows in which every tenth of a second holds something.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from app.admission.quotas import UNLIMITED, Quota
from app.admission.rates import Rates
from app.admission.scopes import REQUESTS, TOKENS, RequestCounts, scopes_of
from app.admission.shared_rates import SharedRates
from app.db.dialect import clock_of
from app.db.session import Database
from app.db.tables.access import rate_grain
from tests.app.admission.test_rates import ALICE, Fixed
from tests.postgres import migrated_postgres

_ALL = Quota(requests_per_minute=10**6, tokens_per_minute=10**9, concurrent_requests=1000)
_CASES = {"requests of a key": (Quota(requests_per_minute=10**6), UNLIMITED), "all six limits": (_ALL, _ALL)}
_PAUSE_SECONDS = 0.01


def _show(name: str, seconds: Sequence[float]) -> None:
    ordered = sorted(1000 * each for each in seconds)
    p95 = ordered[int(0.95 * len(ordered))]
    print(f"{name:34} median {statistics.median(ordered):5.2f} ms, p95 {p95:5.2f} ms, {len(ordered)} times", flush=True)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


async def _one_by_one(counts: RequestCounts, times: int) -> list[float]:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        end = await counts.begun(ALICE)
        took.append(time.perf_counter() - began)
        end()
        await asyncio.sleep(_PAUSE_SECONDS)
    return took


async def _a_second(counts: RequestCounts, *, callers: int, times: int) -> float:
    async def ask() -> None:
        for _ in range(times):
            (await counts.begun(ALICE))()

    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(callers)))
    return callers * times / (time.perf_counter() - began)


def _tokens(database: Database, rates: SharedRates, times: int) -> None:
    """Tokens are counted inside the ledger's transactions: only what they add is timed."""
    reserving, settling = [], []
    for _ in range(times):
        with database.write() as connection:
            began = time.perf_counter()
            hold = rates.hold_in(connection, ALICE, 900)
            reserving.append(time.perf_counter() - began)
        assert hold is not None
        with database.write() as connection:
            settling.append(_timed(lambda c=connection, h=hold: rates.settle_in(c, h, 120)))  # type: ignore[misc]
    _show("  tokens, in a reservation", reserving)
    _show("  tokens, in a settlement", settling)


def _fill(database: Database) -> None:
    with database.write() as connection:
        now = round(clock_of(connection) * 10)
        connection.execute(sa.delete(rate_grain))
        for scope in scopes_of(Fixed(_ALL, _ALL), ALICE):
            for unit in (REQUESTS, TOKENS):
                rows = [{"counter": scope.counter(unit), "grain": now - back, "amount": 1} for back in range(595)]
                connection.execute(sa.insert(rate_grain), rows)


def main() -> None:
    """Print the figures."""
    with migrated_postgres() as database:
        for name, (key, tenant) in _CASES.items():
            _show(f"in memory: {name}", asyncio.run(_one_by_one(Rates(Fixed(key, tenant)), 200)))
            rates = SharedRates(Fixed(key, tenant), database, boot_id="boot_1")
            asyncio.run(_one_by_one(rates, 50))
            _show(f"shared: {name}", asyncio.run(_one_by_one(rates, 600)))
            rate = asyncio.run(_a_second(rates, callers=16, times=100))
            print(f"  16 callers of one key: {rate:.0f} a second", flush=True)
            if key.tokens_per_minute is not None:
                _tokens(database, rates, 300)
                _fill(database)
                _show("  shared, windows of 595 tenths", asyncio.run(_one_by_one(rates, 500)))
            rates.close()


if __name__ == "__main__":
    main()
