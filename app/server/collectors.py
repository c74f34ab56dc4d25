"""Prometheus collectors that read the engine, the index and the database at each scrape."""

import math
import time
from collections.abc import Callable, Iterable
from itertools import accumulate

import sqlalchemy as sa
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from app.db.session import Database
from app.db.tables.documents import job
from app.db.tables.ledger import usage_event
from app.errors import AppError
from app.telemetry.metrics import Metrics
from app.types import JobStatus, Reservation, UsageStatus
from app.usage.ledger.entry import Entry
from generation.ports import Engine
from generation.types import EngineStats, ModelInfo, ServingPath
from generation.types import Histogram as Counts

# written as in the partial index: SQLite would not use that index with a bound parameter
_RESERVED = sa.select(sa.func.count()).select_from(usage_event).where(sa.text(f"status = '{UsageStatus.RESERVED}'"))
_WAITING = sa.select(sa.func.count(), sa.func.min(job.c.created_at)).where(job.c.status == JobStatus.QUEUED)


class EngineCollector(Collector):
    """Counters and gauges of the generation engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        """Read the values (Prometheus calls this at each scrape)."""
        stats = self._engine.stats()
        for name, text, value in (
            ("footnote_engine_running", "Sequences being generated.", stats.running),
            ("footnote_engine_waiting", "Sequences waiting for a slot.", stats.waiting),
            ("footnote_engine_capacity", "Most sequences generated at once.", stats.capacity),
            ("footnote_engine_up", "1 while the engine thread runs.", int(self._engine.alive())),
            ("footnote_engine_block_tokens", "Tokens of keys and values in one block.", stats.block_tokens),
            ("footnote_engine_block_bytes", "Bytes of keys and values in one block.", stats.block_bytes),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        for name, text, value in (
            ("footnote_engine_prefill_tokens", "Prompt tokens computed.", stats.prefill_tokens),
            ("footnote_engine_cached_tokens", "Prompt tokens found in the cache instead.", stats.cached_tokens),
            ("footnote_engine_decode_tokens", "Tokens generated.", stats.decode_tokens),
            ("footnote_engine_drafted_tokens", "Tokens proposed by speculation.", stats.drafted_tokens),
            ("footnote_engine_accepted_tokens", "Proposed tokens that came to stand.", stats.accepted_tokens),
            ("footnote_engine_requests", "Sequences accepted.", stats.requests),
            ("footnote_engine_cancelled", "Sequences cancelled.", stats.cancelled),
            ("footnote_engine_preemptions", "Running sequences put back for want of blocks.", stats.preemptions),
            (
                "footnote_engine_given_back_bytes",
                "Bytes of the prompt cache given back when memory was short.",
                stats.given_back_bytes,
            ),
            ("footnote_engine_restarts", "Times the engine died and was restarted.", stats.restarts),
        ):
            yield CounterMetricFamily(name, text, value=value)
        yield _blocks(stats)
        if stats.path is not None:
            yield _path(self._engine.info, stats.path)
        for name, text, counted in (
            ("footnote_engine_first_token_seconds", "Seconds from submission to the first token.", stats.first_token_s),
            ("footnote_engine_inter_token_seconds", "Seconds between tokens of one sequence.", stats.inter_token_s),
        ):
            if counted is not None:
                yield _histogram(name, text, counted)


def _blocks(stats: EngineStats) -> Metric:
    family = GaugeMetricFamily("footnote_engine_blocks", "Blocks of keys and values by state.", labels=["state"])
    family.add_metric(["free"], stats.free_blocks)
    family.add_metric(["used"], stats.used_blocks)
    family.add_metric(["cached"], stats.cached_blocks)
    return family


def _path(info: ModelInfo, path: ServingPath) -> Metric:
    labels = {
        "device": info.device,
        "dtype": info.dtype,
        "layout": path.layout,
        "kernels": path.kernels,
        "graphs": "on" if path.graphs else "off",
        "speculation": "on" if path.speculation else "off",
        "fastest": "no" if path.slower else "yes",
    }
    family = GaugeMetricFamily(
        "footnote_engine_path_info", "Always 1; what computes the engine's steps.", labels=list(labels)
    )
    family.add_metric(list(labels.values()), 1)
    return family


def _histogram(name: str, text: str, counted: Counts) -> Metric:
    """A Prometheus histogram, whose buckets are cumulative, from counts per interval."""
    assert counted.bounds[-1] == math.inf, "the last bound is infinite"
    bounds = map(floatToGoString, counted.bounds)
    buckets = list(zip(bounds, accumulate(counted.counts), strict=True))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=counted.total_s)


class IndexCollector(Collector):
    """The number of vectors in the index in use."""

    def __init__(self, vectors: Callable[[], int]) -> None:
        self._vectors = vectors

    def collect(self) -> Iterable[Metric]:
        """Read the values (Prometheus calls this at each scrape)."""
        yield GaugeMetricFamily("footnote_index_vectors", "Vectors in the index.", value=self._vectors())


class LedgerCollector(Collector):
    """Open ledger rows, waiting settlements and waiting ingestion jobs; empty while the database cannot be read."""

    def __init__(
        self, database: Database, journaled: Callable[[], int], clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._journaled = journaled
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """Describes nothing: registering must not read the database."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read the values (Prometheus calls this at each scrape)."""
        yield GaugeMetricFamily(
            "footnote_settlements_waiting", "Settlements the database has not taken yet.", value=self._journaled()
        )
        for pool, connections in self._database.connections().items():
            yield GaugeMetricFamily(
                f"footnote_db_{pool}_connections", f"Connections of the {pool} pool in use.", value=connections
            )
        try:
            with self._database.read() as connection:
                reserved = connection.execute(_RESERVED).scalar_one()
                waiting, oldest = connection.execute(_WAITING).one()
        except AppError:
            return
        yield GaugeMetricFamily("footnote_ledger_reserved_rows", "Calls written down and not settled.", value=reserved)
        yield GaugeMetricFamily("footnote_ingestion_waiting_jobs", "Documents that wait to be read.", value=waiting)
        yield GaugeMetricFamily(
            "footnote_ingestion_oldest_waiting_seconds",
            "How long the first of the waiting documents has waited; 0 without one.",
            value=max(0.0, self._clock() - oldest) if oldest is not None else 0.0,
        )


class TokenMetrics:
    """The `LedgerObserver` that counts the tokens of settled calls for Prometheus."""

    def __init__(self, metrics: Metrics) -> None:
        self._tokens = metrics.tokens

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """Count nothing: no token was spent yet."""

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:  # noqa: ARG002 - the port's signature
        """Count the tokens of a settled call."""
        by_component = {
            **entry.measures.parts,
            "output": entry.measures.output_tokens,
            "cached": entry.measures.input_cached_tokens,
        }
        if not entry.operation.generates:
            by_component = {"input": entry.measures.input_tokens}
        for component, count in by_component.items():
            if count > 0:
                self._tokens.labels(entry.operation.value, component).inc(count)
