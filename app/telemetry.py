"""Logs and metrics. No document text, prompt or secret goes into either."""

import logging
import sys
from collections.abc import Iterable, Sized
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from generation.ports import Engine


def configure_logging(*, level: str, json: bool) -> None:
    """Write structured log lines to standard error, our own and the libraries'."""
    renderer: Any = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
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

    def watch_engine(self, engine: Engine) -> None:
        """Report the engine's own counters at each scrape."""
        self.registry.register(_EngineCollector(engine))

    def watch_index(self, size: Sized) -> None:
        """Report how many vectors the index holds at each scrape."""
        self.registry.register(_IndexCollector(size))


class _EngineCollector(Collector):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        stats = self._engine.stats()
        for name, text, value in (
            ("footnote_engine_running", "Sequences being generated.", stats.running),
            ("footnote_engine_waiting", "Sequences waiting for a slot.", stats.waiting),
            ("footnote_engine_up", "1 while the engine thread runs.", int(self._engine.alive())),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        for name, text, value in (
            ("footnote_engine_prefill_tokens", "Prompt tokens computed.", stats.prefill_tokens),
            ("footnote_engine_decode_tokens", "Tokens generated.", stats.decode_tokens),
            ("footnote_engine_requests", "Sequences accepted.", stats.requests),
            ("footnote_engine_cancelled", "Sequences cancelled.", stats.cancelled),
        ):
            yield CounterMetricFamily(name, text, value=value)


class _IndexCollector(Collector):
    def __init__(self, size: Sized) -> None:
        self._size = size

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("footnote_index_vectors", "Vectors in the index.", value=len(self._size))
