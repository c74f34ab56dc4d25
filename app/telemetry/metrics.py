"""The Prometheus metrics of one application. Labels are small closed sets: never a tenant, a document or a text."""

import platform
import threading
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_LAG = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """The metrics of one application, in a registry of their own. Safe to use from any thread.

    Example:
        >>> metrics = Metrics()
        >>> metrics.station("rerank", 0.02)
        >>> prometheus_client.generate_latest(metrics.registry)
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "footnote_http_requests_total", "HTTP requests by route template and status.",
            ["method", "route", "status"], registry=registry,
        )  # fmt: skip
        self.latency = Histogram(
            "footnote_http_request_seconds", "Seconds from request to the end of the response, by route template.",
            ["method", "route"], registry=registry,
        )  # fmt: skip
        self.problems = Counter(
            "footnote_problems_total", "Requests answered with a problem, by the slug of its type.",
            ["problem"], registry=registry,
        )  # fmt: skip
        self.budget_refusals = Counter(
            "footnote_budget_refusals_total", "Calls a budget had no room for, by what it counts.",
            ["unit"], registry=registry,
        )  # fmt: skip
        self.feedback = Counter(
            "footnote_feedback_total", "Feedback on answers by its verdict; what is said again counts again.",
            ["verdict"], registry=registry,
        )  # fmt: skip
        self._stations = _ByStation(
            Histogram(
                "footnote_station_seconds",
                "Seconds at each station of a request.",
                ["station"],
                registry=registry,
                buckets=_SHORT,
            )
        )
        self._ingestion = _ByStation(
            Histogram(
                "footnote_ingestion_station_seconds",
                "Seconds at each station of ingestion; documents embedded or committed together count once.",
                ["station"],
                registry=registry,
                buckets=_LONG,
            )
        )
        self.tokens = Counter(
            "footnote_tokens_total", "Tokens of settled calls by operation and component. The ledger is exact; here a "
            "transaction that fails and is tried again counts twice.",
            ["operation", "component"], registry=registry,
        )  # fmt: skip
        self.loop_lag = Histogram(
            "footnote_event_loop_lag_seconds", "How late the event loop wakes a task that asked for a moment.",
            registry=registry, buckets=_LAG,
        )  # fmt: skip
        self.ingested = Counter(
            "footnote_documents_ingested_total", "Finished ingestion jobs by outcome.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        self.inconsistencies = Gauge(
            "footnote_inconsistencies", "What the last reconciliation found and left, by kind.",
            ["kind"], registry=registry,
        )  # fmt: skip
        self.reconciled_at = Gauge(
            "footnote_reconciled_timestamp_seconds", "When the last reconciliation ended, in Unix seconds; 0: not yet.",
            registry=registry,
        )  # fmt: skip
        self.ledger_mismatches = Gauge(
            "footnote_ledger_mismatches", "Comparisons that failed when the ledger was reconciled last, by check.",
            ["check"], registry=registry,
        )  # fmt: skip
        self.ledger_reconciled_at = Gauge(
            "footnote_ledger_reconciled_timestamp_seconds",
            "When the ledger was reconciled last, in Unix seconds; 0: not yet.",
            registry=registry,
        )  # fmt: skip
        registry.register(_ThreadCollector())
        ProcessCollector(registry=registry)  # memory, processor time, open files

    def station(self, name: str, seconds: float) -> None:
        """Observe the seconds of a request's station."""
        self._stations.observe(name, seconds)

    def ingestion_station(self, name: str, seconds: float) -> None:
        """Observe the seconds of an ingestion station, for one document or several together."""
        self._ingestion.observe(name, seconds)

    def refused(self, problem: str, *, unit: str | None = None) -> None:
        """Count a request that ended with a problem; `unit` is that of the budget that refused it."""
        self.problems.labels(problem).inc()
        if unit is not None:
            self.budget_refusals.labels(unit).inc()

    def count_feedback(self, score: float) -> None:
        """Count feedback on an answer, a score from -1 to 1."""
        self.feedback.labels("good" if score > 0 else "bad" if score < 0 else "neutral").inc()

    def describe_build(self, version: str) -> None:
        """Publish the version of Footnote and of Python."""
        Gauge("footnote_build_info", "Always 1; what runs here.", ["version", "python"], registry=self.registry).labels(
            version, platform.python_version()
        ).set(1)

    def register(self, collector: Collector) -> None:
        """Add a collector, whose metrics are read at each scrape."""
        self.registry.register(collector)


class _ByStation:
    """A histogram by station that caches its labelled series."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._series: dict[str, Histogram] = {}

    def observe(self, name: str, seconds: float) -> None:
        series = self._series.get(name)
        if series is None:
            series = self._series[name] = self._histogram.labels(name)
        series.observe(seconds)


class _ThreadCollector(Collector):
    """Counts the threads of the process, which prometheus_client's own collector leaves out."""

    def collect(self) -> Iterable[Metric]:
        """Count the threads now."""
        yield GaugeMetricFamily("footnote_threads", "Threads of the process.", value=threading.active_count())
