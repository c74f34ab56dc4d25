"""Where work that is timed begins: requests and jobs, over the metrics and the tracer of one application."""

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from app.instrumentation import Work, traceparent
from app.metrics import Metrics
from app.tracing import NO_SPAN, NO_TRACES, Attribute, Tracer

_ORIGINS = 10_000  # jobs whose upload's trace is remembered until they begin


class Instruments:
    """Where work is begun: the metrics and the tracer of one application."""

    def __init__(self, metrics: Metrics, tracer: Tracer = NO_TRACES) -> None:
        self.metrics = metrics
        self.tracer = tracer
        self._origins: OrderedDict[str, str] = OrderedDict()

    def request(self, name: str, *, parent: str | None, attributes: Mapping[str, Attribute]) -> Work:
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

    def job(self, job_id: str) -> Work:
        """A job: a trace of its own, linked to the request that queued it. Whoever begins it ends the span."""
        origin = self._origins.pop(job_id, None)
        span = NO_SPAN
        if self.tracer.on:
            links = (origin,) if origin else ()
            span = self.tracer.start("ingest", kind="consumer", links=links, attributes={"footnote.job_id": job_id})
        return Work(self.metrics.ingestion_station, tracer=self.tracer, span=span)

    @contextmanager
    def together(self, name: str, works: Sequence[Work]) -> Iterator[None]:
        """A station that several jobs go through at once: counted once, a span in each one's trace."""
        started = time.perf_counter()
        with ExitStack() as spans:
            for work in works if self.tracer.on else ():
                span = self.tracer.start(name, parent=work.span, attributes={"footnote.jobs": len(works)})
                spans.callback(span.end)
            yield
        self.metrics.ingestion_station(name, time.perf_counter() - started)
