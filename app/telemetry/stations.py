"""Where work that is timed begins: requests and jobs, over the metrics and the tracer of one application."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, Token
from types import TracebackType

from app.telemetry.metrics import Metrics
from app.telemetry.tracing import NO_SPAN, NO_TRACES, Attribute, Span, Tracer
from generation.types import Completion

_ORIGINS = 10_000  # jobs whose upload's trace is remembered until they begin


class Instruments:
    """Where work is begun: the metrics and the tracer of one application."""

    def __init__(self, metrics: Metrics, tracer: Tracer = NO_TRACES) -> None:
        self.metrics = metrics
        self.tracer = tracer
        self._origins: OrderedDict[str, str] = OrderedDict()

    def request(self, name: str, *, parent: str | None, attributes: Mapping[str, Attribute]) -> "Work":
        """An HTTP request, its span a child of `parent` (a `traceparent`). Whoever begins it ends the span."""
        span = NO_SPAN
        if self.tracer.on:
            span = self.tracer.start(name, kind="server", parent=parent, attributes=attributes)
        return Work(self.metrics.station, tracer=self.tracer, span=span)

    def queued(self, job_id: str) -> None:
        """The request at hand queued a job; kept in this process alone, so a job of an earlier one has no link."""
        if (origin := traceparent()) is None:
            return
        self._origins[job_id] = origin
        while len(self._origins) > _ORIGINS:
            self._origins.popitem(last=False)

    def job(self, job_id: str) -> "Work":
        """A job: a trace of its own, linked to the request that queued it. Whoever begins it ends the span."""
        origin = self._origins.pop(job_id, None)
        span = NO_SPAN
        if self.tracer.on:
            links = (origin,) if origin else ()
            span = self.tracer.start("ingest", kind="consumer", links=links, attributes={"footnote.job_id": job_id})
        return Work(self.metrics.ingestion_station, tracer=self.tracer, span=span)

    @contextmanager
    def together(self, name: str, works: "Sequence[Work]") -> Iterator[None]:
        """A station that several jobs go through at once: counted once, a span in each one's trace."""
        started = time.perf_counter()
        with ExitStack() as spans:
            for work in works if self.tracer.on else ():
                span = self.tracer.start(name, parent=work.span, attributes={"footnote.jobs": len(works)})
                spans.callback(span.end)
            yield
        self.metrics.ingestion_station(name, time.perf_counter() - started)


def _unmeasured(name: str, seconds: float) -> None:
    """Nobody counts."""


class Work:
    """One request or job under way.

    `problem` is the slug of the problem it ended with, None without one; `refused_by` the unit of the budget that
    refused it. `span` is its own; stations are its children.
    """

    __slots__ = ("_observe", "_tracer", "problem", "refused_by", "span")

    def __init__(
        self,
        observe: Callable[[str, float], None] = _unmeasured,
        *,
        tracer: Tracer = NO_TRACES,
        span: Span = NO_SPAN,
    ) -> None:
        """`observe(station, seconds)` counts."""
        self._observe = observe
        self._tracer = tracer
        self.span = span
        self.problem: str | None = None
        self.refused_by: str | None = None

    @contextmanager
    def active(self) -> Iterator["Work"]:
        """Stations in the block are its own, in this thread or task."""
        work, span = _work.set(self), _span.set(self.span)
        try:
            yield self
        finally:
            _span.reset(span)
            _work.reset(work)

    def begin(self, name: str, attributes: Mapping[str, Attribute] | None) -> Span | None:
        """A span for a station, None where nobody traces."""
        if not self._tracer.on:
            return None
        return self._tracer.start(name, parent=_span.get() or self.span, attributes=attributes)

    def passed(self, name: str, seconds: float) -> None:
        """A station took so long."""
        self._observe(name, seconds)

    def record(
        self, name: str, *, seconds: float, ended_ns: int, attributes: Mapping[str, Attribute] | None = None
    ) -> None:
        """A station that somebody else timed took `seconds` until `ended_ns` (Unix nanoseconds)."""
        self._observe(name, seconds)
        if self._tracer.on:
            started = ended_ns - round(seconds * 1e9)
            self._tracer.start(name, parent=self.span, attributes=attributes, start_ns=started).end(at_ns=ended_ns)


_work: ContextVar[Work | None] = ContextVar("footnote_work", default=None)
_span: ContextVar[Span | None] = ContextVar("footnote_span", default=None)
_NOBODY = Work()  # never written to: who notes a problem looks first


def current() -> "Work":
    """What this thread or task works on; a nameless one where nothing was begun."""
    return _work.get() or _NOBODY


def note_problem(slug: str, *, refused_by: str | None = None) -> None:
    """The request at hand ends with a problem; `refused_by` is the unit of the budget that refused it."""
    if (work := _work.get()) is not None:
        work.problem, work.refused_by = slug, refused_by


def traceparent() -> str | None:
    """The header that carries the trace at hand on to another server, None where nobody traces."""
    span = _span.get()
    return span.traceparent if span is not None else None


class station:  # noqa: N801 - read as the verb it is: `with station("rerank"):`
    """Times a block as a station of the work at hand. `seconds` is what it took, once it is over.

    Under 20 µs without traces, `tests/app/api/test_monitoring.py` sees to that.
    """

    __slots__ = ("_name", "_note", "_reset", "_span", "_started", "_work", "seconds")

    def __init__(self, name: str, attributes: Mapping[str, Attribute] | None = None) -> None:
        self._name = name
        self._note = attributes
        self._span: Span | None = None
        self._reset: Token[Span | None] | None = None
        self.seconds = 0.0

    def __enter__(self) -> "station":
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
        self._work.passed(self._name, self.seconds)
        if self._span is not None and self._reset is not None:
            _span.reset(self._reset)
            self._span.end(error=kind.__name__ if kind is not None else None)

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Say more of it in the trace."""
        if self._span is not None:
            self._span.note(attributes)


def record_generation(work: Work, completion: Completion, *, ended_ns: int | None = None) -> None:
    """Record the stations of a completion that ended at `ended_ns` (Unix nanoseconds; None is now)."""
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
