"""Times the stations of requests and jobs: each goes to a Prometheus histogram and, if traced, becomes a span.

A station is one stage of a request or of ingestion, such as `rerank` or `prefill`. `with timed("rerank"):` times a
block for the current request or job, which a context variable holds. `Instruments` begins requests and jobs.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, Token
from types import TracebackType

from cachetools import FIFOCache

from app.telemetry.metrics import Metrics
from app.telemetry.tracing import NO_SPAN, NO_TRACES, Attribute, Tracer, TraceSpan
from generation.types import Completion

_ORIGINS = 10_000  # queued jobs whose uploading trace is remembered


class Instruments:
    """Begins the requests and jobs of one application, with its metrics and its tracer.

    Example:
        >>> work = instruments.request("POST /v1/answers", parent=None, attributes={})
        >>> with work.active(), timed("rerank"):
        ...     rerank()
        >>> work.span.end()
    """

    def __init__(self, metrics: Metrics, tracer: Tracer = NO_TRACES) -> None:
        self.metrics = metrics
        self.tracer = tracer
        self._origins: FIFOCache[str, str] = FIFOCache(_ORIGINS)
        self._lock = threading.Lock()

    def request(self, name: str, *, parent: str | None, attributes: Mapping[str, Attribute]) -> "Activity":
        """Begin an HTTP request, whose span is a child of `parent` (a `traceparent`). The caller ends the span."""
        span = NO_SPAN
        if self.tracer.on:
            span = self.tracer.start(name, kind="server", parent=parent, attributes=attributes)
        return Activity(self.metrics.station, tracer=self.tracer, span=span)

    def queued(self, job_id: str) -> None:
        """Remember that the current request queued a job, in this process only, so that the job's trace links to it."""
        if (origin := traceparent()) is None:
            return
        with self._lock:
            self._origins[job_id] = origin

    def job(self, job_id: str) -> "Activity":
        """Begin a job: a trace of its own, linked to the request that queued it. The caller ends the span."""
        with self._lock:
            origin = self._origins.pop(job_id, None)
        span = NO_SPAN
        if self.tracer.on:
            links = (origin,) if origin else ()
            span = self.tracer.start("ingest", kind="consumer", links=links, attributes={"footnote.job_id": job_id})
        return Activity(self.metrics.ingestion_station, tracer=self.tracer, span=span)

    @contextmanager
    def together(self, name: str, works: "Sequence[Activity]") -> Iterator[None]:
        """Time a station of several jobs at once: one observation, and a span in the trace of each job."""
        started = time.perf_counter()
        with ExitStack() as spans:
            for work in works if self.tracer.on else ():
                span = self.tracer.start(name, parent=work.span, attributes={"footnote.jobs": len(works)})
                spans.callback(span.end)
            yield
        self.metrics.ingestion_station(name, time.perf_counter() - started)


def _unmeasured(name: str, seconds: float) -> None:
    """The observer of unmeasured work; it does nothing."""


class Activity:
    """A running request or job. Its `span` is the parent of the spans of its stations.

    `problem` is the slug of the problem it ended with, None without one; `refused_by` is the unit of the budget that
    refused it.
    """

    __slots__ = ("_observe", "_tracer", "problem", "refused_by", "span")

    def __init__(
        self,
        observe: Callable[[str, float], None] = _unmeasured,
        *,
        tracer: Tracer = NO_TRACES,
        span: TraceSpan = NO_SPAN,
    ) -> None:
        """`observe(station, seconds)` is called for each station."""
        self._observe = observe
        self._tracer = tracer
        self.span = span
        self.problem: str | None = None
        self.refused_by: str | None = None

    @contextmanager
    def active(self) -> Iterator["Activity"]:
        """Make this the current work of the thread or task: stations in the block belong to it."""
        work, span = _work.set(self), _span.set(self.span)
        try:
            yield self
        finally:
            _span.reset(span)
            _work.reset(work)

    def begin(self, name: str, attributes: Mapping[str, Attribute] | None) -> TraceSpan | None:
        """Start the span of a station; None if traces are off."""
        if not self._tracer.on:
            return None
        return self._tracer.start(name, parent=_span.get() or self.span, attributes=attributes)

    def observe(self, name: str, seconds: float) -> None:
        """Observe the seconds of a station."""
        self._observe(name, seconds)

    def record(
        self, name: str, *, seconds: float, ended_ns: int, attributes: Mapping[str, Attribute] | None = None
    ) -> None:
        """Record a station that was timed elsewhere: it took `seconds` until `ended_ns` (Unix nanoseconds)."""
        self._observe(name, seconds)
        if self._tracer.on:
            started = ended_ns - round(seconds * 1e9)
            self._tracer.start(name, parent=self.span, attributes=attributes, start_ns=started).end(at_ns=ended_ns)


_work: ContextVar[Activity | None] = ContextVar("footnote_work", default=None)
_span: ContextVar[TraceSpan | None] = ContextVar("footnote_span", default=None)
_NOBODY = Activity()  # shared, so never written to: `note_problem` skips it


def current() -> "Activity":
    """The current work of this thread or task; an unmeasured one if none was begun."""
    return _work.get() or _NOBODY


def note_problem(slug: str, *, refused_by: str | None = None) -> None:
    """Record the problem that the current request ends with; `refused_by` is the unit of the budget that refused it."""
    if (work := _work.get()) is not None:
        work.problem, work.refused_by = slug, refused_by


def traceparent() -> str | None:
    """The W3C `traceparent` header for requests to other servers; None if traces are off."""
    span = _span.get()
    return span.traceparent if span is not None else None


class timed:  # noqa: N801 - used like a function: `with timed("rerank"):`
    """A context manager that times its block as a station of the current work; `seconds` is the result.

    It costs less than 20 µs without traces, which `tests/app/api/test_monitoring.py` checks.
    """

    __slots__ = ("_name", "_note", "_reset", "_span", "_started", "_work", "seconds")

    def __init__(self, name: str, attributes: Mapping[str, Attribute] | None = None) -> None:
        self._name = name
        self._note = attributes
        self._span: TraceSpan | None = None
        self._reset: Token[TraceSpan | None] | None = None
        self.seconds = 0.0

    def __enter__(self) -> "timed":
        self._work = _work.get() or _NOBODY
        self._span = self._work.begin(self._name, self._note)
        if self._span is not None:
            self._reset = _span.set(self._span)
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._started
        self._work.observe(self._name, self.seconds)
        if self._span is not None and self._reset is not None:
            _span.reset(self._reset)
            self._span.end(error=kind.__name__ if kind is not None else None)

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes to its span."""
        if self._span is not None:
            self._span.note(attributes)


def record_generation(work: Activity, completion: Completion, *, ended_ns: int | None = None) -> None:
    """Record the stations of a completion from its timings; it ended at `ended_ns` (Unix nanoseconds; None: now)."""
    timings, end = completion.timings, ended_ns or time.time_ns()
    began = end - round(timings.total_ms * 1e6)
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": completion.prompt_tokens,
        "gen_ai.usage.output_tokens": completion.generated_tokens,
        "footnote.cached_tokens": completion.cached_tokens,
        "footnote.delivered_tokens": completion.delivered_tokens,
        "footnote.finish_reason": completion.finish_reason.value,
    }
    queue_s = timings.queue_ms / 1000
    work.record("engine", seconds=timings.total_ms / 1000, ended_ns=end, attributes=attributes)
    work.record("engine_queue", seconds=queue_s, ended_ns=began + round(queue_s * 1e9))
    if timings.first_token_ms is None:
        return
    first_s = timings.first_token_ms / 1000
    first_ns = began + round(first_s * 1e9)
    work.record("prefill", seconds=max(0.0, first_s - queue_s), ended_ns=first_ns)
    work.record("first_token", seconds=first_s, ended_ns=first_ns)
    work.record("decode", seconds=max(0.0, timings.total_ms / 1000 - first_s), ended_ns=end)
