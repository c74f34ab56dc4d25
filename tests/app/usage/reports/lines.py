"""Lines of a ledger drawn at random, written with their sums, and summed again the slow way."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import sqlalchemy as sa
from hypothesis import strategies as st

from app.db.session import Database
from app.db.tables.ledger import api_request, usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.usage_columns import Measures
from app.types import Operation
from app.usage.ledger.entry import Entry
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.rollups import Rollups
from tests.app.usage.samples import Clock

ZONES = tuple(sorted(available_timezones()))
QUARTER = 900
DAY = 86_400
LATER = 4_000_000_000  # Unix seconds, after every line
PARTS = ("system", "history", "context", "question", "template")
DIMENSIONS = ("project_id", "user_id", "api_key_id", "model", "operation", "status")
GENERATES = ("chat", "rewrite")


@dataclass(frozen=True)
class Line:
    """A settled call or an adjustment as the reference counts it; `at` in Unix microseconds."""

    at: int
    user_id: str = "u1"
    api_key_id: str = "k1"
    model: str = "m1"
    project_id: str = ""
    operation: str = "chat"
    status: str = "completed"
    parts: tuple[int, ...] = (1, 0, 0, 0, 0)
    cached: int = 0
    output: int = 0
    delivered: int = 0
    cost: int | None = None
    tenant_id: str = "t1"

    @property
    def adjusts(self) -> bool:
        return self.status == "adjustment"


@st.composite
def lines(draw: st.DrawFn, moments: st.SearchStrategy[int]) -> Line:
    """A line at one of `moments` (Unix microseconds)."""
    parts = draw(st.tuples(*[st.integers(0, 50)] * 5))
    output = draw(st.integers(0, 90))
    line = Line(
        at=draw(moments),
        user_id=draw(st.sampled_from(["u1", "u2", "U1", "ü"])),
        api_key_id=draw(st.sampled_from(["k1", "k2"])),
        model=draw(st.sampled_from(["m1", "m2"])),
        project_id=draw(st.sampled_from(["", "c1"])),
        operation=draw(st.sampled_from(["chat", "chat", "rewrite", "embed_query", "embed_doc", "rerank", "judge"])),
        status=draw(st.sampled_from(["completed", "client_abort", "server_abort", "error", "recovered"])),
        parts=parts,
        cached=draw(st.integers(0, sum(parts))),
        output=output,
        delivered=draw(st.integers(0, output)),
        cost=draw(st.one_of(st.none(), st.integers(0, 2**62))),
        tenant_id=draw(st.sampled_from(["t1", "t1", "t1", "t2"])),
    )
    if draw(st.integers(0, 3)):
        return line
    cost = draw(st.integers(-(2**62), 2**62))
    signs = draw(st.sampled_from([1, -1]))
    return replace(line, status="adjustment", parts=tuple(signs * part for part in parts), cost=cost)


def transitions(zone: ZoneInfo, year: int) -> list[int]:
    """Unix seconds beside which a zone's clocks change in a year, to the quarter hour."""
    start = int(datetime(year, 1, 1, tzinfo=ZoneInfo("UTC")).timestamp())
    changed = []
    for day in range(start, start + 366 * DAY, DAY):
        if offset(day, zone) != offset(day + DAY, zone):
            changed += [at for at in range(day, day + DAY, QUARTER) if offset(at, zone) != offset(at + QUARTER, zone)]
    return [at + QUARTER for at in changed]


def offset(at: int, zone: ZoneInfo) -> float:
    moved = datetime.fromtimestamp(at, zone).utcoffset()
    assert moved is not None
    return moved.total_seconds()


def walk(start: int, end: int, width: str, zone: ZoneInfo) -> list[int]:
    """Edges of buckets the slow way, in Unix seconds: quarter hour by quarter hour along the local clock."""
    edges, latest = [start], (0, 0, 0)
    for at in range(start - start % QUARTER - 3 * DAY, end, QUARTER):
        local = datetime.fromtimestamp(at, zone)
        label = (local.year, local.month, local.day if width == "1d" else 0)
        match width:
            case "15m":
                begins = True
            case "1h":
                begins = local.minute < 15 or local.hour != datetime.fromtimestamp(at - QUARTER, zone).hour
            case _:  # a date that comes again when clocks go back over midnight is not another
                begins = label > latest
        latest = max(latest, label)
        if begins and at > start:
            edges.append(at)
    return [*edges, end]


class Books:
    """A database holding `written`, its sums kept for `zone`, and the reports over them."""

    def __init__(self, database: Database, written: Iterable[Line], *, zone: str = "UTC") -> None:
        self.lines = tuple(written)
        self.zone = ZoneInfo(zone)
        self.database = database
        self.reports = UsageReports(database, zone=self.zone, clock=Clock(LATER))
        with database.write() as connection:
            # one example must not see another's lines: each has tenants of its own
            self._run = f"run{connection.execute(sa.select(sa.func.count()).select_from(api_request)).scalar()}-"
            connection.execute(
                sa.insert(api_request).values(
                    request_id=self._run, tenant_id="", endpoint="/v1/ask", accepted_at=0, boot_id="b"
                )
            )
            rollups = Rollups(self.zone)
            for number, line in enumerate(self.lines):
                self._write(connection, f"{self._run}:{number}", line)
                rollups.settle_in(connection, self.entry(line))

    def tenant(self, name: str = "t1") -> str:
        return self._run + name

    def entry(self, line: Line) -> Entry:
        """As the ledger would tell its books of it."""
        return Entry(
            event_id="",
            tenant_id=self.tenant(line.tenant_id),
            project_id=line.project_id,
            user_id=line.user_id,
            key_id=line.api_key_id,
            model=line.model,
            operation=Operation(line.operation),
            status=line.status,
            at=line.at,
            calls=0 if line.adjusts else 1,
            measures=Measures(
                input_tokens=sum(line.parts),
                input_cached_tokens=line.cached,
                output_tokens=line.output,
                output_delivered_tokens=line.delivered,
                **{f"tok_{name}": count for name, count in zip(PARTS, line.parts, strict=True)},
            ),
            cost_pico=line.cost,
        )

    def _write(self, connection: sa.Connection, event_id: str, line: Line) -> None:
        counts: dict[str, Any] = {
            **{f"tok_{name}": count for name, count in zip(PARTS, line.parts, strict=True)},
            "input_tokens": sum(line.parts),
            "input_cached_tokens": line.cached,
            "output_tokens": line.output,
            "output_delivered_tokens": line.delivered,
            "cost_pico": line.cost,
        }
        of_call: dict[str, Any] = {"settled_at": line.at, "status": line.status, **counts}
        if line.adjusts:  # of a call long before
            of_call = {"settled_at": 1, "status": "completed"}
        connection.execute(
            sa.insert(usage_event).values(
                event_id=event_id,
                request_id=self._run,
                operation=line.operation,
                tenant_id=self.tenant(line.tenant_id),
                project_id=line.project_id,
                user_id=line.user_id,
                api_key_id=line.api_key_id,
                boot_id="b",
                model_id=line.model,
                tokenizer_rev="r1",
                max_output_tokens=100,
                accepted_at=0,
                **of_call,
            )
        )
        if line.adjusts:
            connection.execute(
                sa.insert(usage_adjustment).values(
                    adjustment_id=event_id,
                    event_id=event_id,
                    kind="rerate",
                    currency="usd",
                    reason="r",
                    created_by="u",
                    created_at=line.at,
                    **counts,
                )
            )

    def page(self, report: str, **asked: Any) -> dict[str, Any]:
        page: dict[str, Any] = getattr(self.reports, report)(ReportQuery(tenant_id=self.tenant(), **asked))
        return page

    def buckets(self, report: str = "completions", **asked: Any) -> list[dict[str, Any]]:
        """All buckets, page after page."""
        found: list[dict[str, Any]] = []
        page = None
        while True:
            answer = self.page(report, page=page, **asked)
            assert 1 <= len(answer["data"]) <= asked.get("limit", 672)
            found += answer["data"]
            page = answer["next_page"]
            assert answer["has_more"] == (page is not None)
            if page is None:
                return found

    def of(self, *operations: str) -> list[Line]:
        """The tenant's lines of some operations, of all where none is named."""
        return [
            line for line in self.lines if line.tenant_id == "t1" and line.operation in (operations or [line.operation])
        ]


def results(buckets: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [result for bucket in buckets for result in bucket["results"]]


def pico(value: str | None) -> int:
    """A decimal string with 12 decimals as pico-units."""
    return 0 if value is None else int(value.replace(".", ""))


def total(found: Iterable[dict[str, Any]]) -> Counter[str]:
    """Every number of some results, summed; money in pico-units. Zeros are left out."""
    summed: Counter[str] = Counter()
    for result in found:
        summed.update({name: value for name, value in result.items() if isinstance(value, int)})
        summed.update(result.get("components", {}))
        summed["cost"] += pico(result["cost"]["value"])
    return Counter({name: count for name, count in summed.items() if count})


def reference(found: Iterable[Line]) -> Counter[str]:
    """The same numbers straight from the lines."""
    summed: Counter[str] = Counter()
    for line in found:
        summed.update(dict(zip(PARTS, line.parts, strict=True)))
        calls = 0 if line.adjusts else 1
        summed.update(
            {
                "input_tokens": sum(line.parts),
                "input_cached_tokens": line.cached,
                "input_uncached_tokens": sum(line.parts) - line.cached,
                "output_tokens": line.output,
                "output_delivered_tokens": line.delivered,
                "num_model_requests": calls,
                "num_aborted": line.status in ("client_abort", "server_abort"),
                "num_recovered": line.status == "recovered",
                "num_unpriced": calls if line.cost is None else 0,
                "cost": line.cost or 0,
            }
        )
    return Counter({name: count for name, count in summed.items() if count})


def between(found: Iterable[Line], start: int, end: int) -> list[Line]:
    """Those that counted in `[start, end)`, Unix seconds."""
    return [line for line in found if start * 10**6 <= line.at < end * 10**6]


def grouped(found: Iterable[Line], names: Sequence[str]) -> dict[tuple[str, ...], list[Line]]:
    """Lines by the values of some dimensions, in order."""

    def key(line: Line) -> tuple[str, ...]:
        return tuple(getattr(line, name) for name in names)

    return {values: list(some) for values, some in itertools.groupby(sorted(found, key=key), key)}
