"""Logs and metrics. No document text, prompt or secret goes into either."""

import logging
import math
import sys
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from generation.ports import Engine
from generation.types import EngineStats
from generation.types import Histogram as Counts


def configure_logging(*, level: str, json: bool) -> None:
    """Write structured log lines to standard error, our own and the libraries'."""
    renderer: Any = structlog.processors.JSONRenderer()
    if not json:  # a traceback with local variables would show documents and passwords
        renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in (
        "httpx",
        "httpcore",
        "sentence_transformers",
        "transformers",
        "uvicorn.access",
        "alembic",
        "filelock",
    ):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def logger() -> Any:
    """The application's logger."""
    return structlog.stdlib.get_logger("footnote")


class Metrics:
    """Prometheus metrics of one application instance, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "footnote_http_requests_total", "HTTP requests by route template and status.",
            ["method", "route", "status"], registry=self.registry,
        )  # fmt: skip
        self.latency = Histogram(
            "footnote_http_request_seconds", "Seconds from request to the end of the response, by route template.",
            ["method", "route"], registry=self.registry,
        )  # fmt: skip
        self.ingested = Counter(
            "footnote_documents_ingested_total", "Finished ingestion jobs by outcome.",
            ["outcome"], registry=self.registry,
        )  # fmt: skip
        self.inconsistencies = Gauge(
            "footnote_inconsistencies", "What the last reconciliation found and left, by kind.",
            ["kind"], registry=self.registry,
        )  # fmt: skip
        self.reconciled_at = Gauge(
            "footnote_reconciled_timestamp_seconds", "When the last reconciliation ended, in Unix seconds; 0: not yet.",
            registry=self.registry,
        )  # fmt: skip
        self.ledger_mismatches = Gauge(
            "footnote_ledger_mismatches", "Comparisons that failed when the ledger was reconciled last, by check.",
            ["check"], registry=self.registry,
        )  # fmt: skip
        self.ledger_reconciled_at = Gauge(
            "footnote_ledger_reconciled_timestamp_seconds",
            "When the ledger was reconciled last, in Unix seconds; 0: not yet.",
            registry=self.registry,
        )  # fmt: skip

    def watch_engine(self, engine: Engine) -> None:
        """Report the engine's own counters at each scrape."""
        self.registry.register(_EngineCollector(engine))

    def watch_index(self, vectors: Callable[[], int]) -> None:
        """Report how many vectors the index in use holds at each scrape."""
        self.registry.register(_IndexCollector(vectors))


class _EngineCollector(Collector):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        stats = self._engine.stats()
        for name, text, value in (
            ("footnote_engine_running", "Sequences being generated.", stats.running),
            ("footnote_engine_waiting", "Sequences waiting for a slot.", stats.waiting),
            ("footnote_engine_capacity", "Most sequences generated at once.", stats.capacity),
            ("footnote_engine_up", "1 while the engine thread runs.", int(self._engine.alive())),
            ("footnote_engine_block_tokens", "Tokens of keys and values in one block.", stats.block_tokens),
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
            ("footnote_engine_restarts", "Times the engine died and was restarted.", stats.restarts),
        ):
            yield CounterMetricFamily(name, text, value=value)
        yield _blocks(stats)
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


def _histogram(name: str, text: str, counted: Counts) -> Metric:
    """Prometheus' buckets are cumulative and end at +Inf; ours count each interval by itself."""
    assert counted.bounds[-1] == math.inf, "the last bound is infinite"
    bounds = map(floatToGoString, counted.bounds)
    buckets = list(zip(bounds, accumulate(counted.counts), strict=True))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=counted.total_s)


class _IndexCollector(Collector):
    def __init__(self, vectors: Callable[[], int]) -> None:
        self._vectors = vectors

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("footnote_index_vectors", "Vectors in the index.", value=self._vectors())
