"""Sends traces to an OpenTelemetry collector with OTLP over HTTP. The SDK is imported only if an endpoint is set."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.errors import SetupError
from app.telemetry.tracing import NO_TRACES, Attribute, Kind, Tracer, TraceSpan

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span as SdkSpan

_SAMPLED = 1  # W3C Trace Context, 3.2.2.5
_PATH = "/v1/traces"  # the path for traces in OTLP/HTTP, after the base address


def open_tracer(endpoint: str, *, ratio: float, version: str) -> Tracer:
    """The tracer for the settings; one that does nothing if `endpoint` is empty.

    Args:
        endpoint: Base address of a collector, such as `http://127.0.0.1:4318`.
        ratio: Share of the traces begun here that are kept, in [0, 1]; the decision of a parent trace is followed.
        version: Of Footnote.

    Raises:
        SetupError: The extra `otel` is not installed.
    """
    if not endpoint:
        return NO_TRACES
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SetupError(
            "FOOTNOTE_OTLP_ENDPOINT needs the extra `otel`: pip install 'footnote-rag[otel]', or leave it empty."
        ) from None
    address = endpoint.rstrip("/")
    exporter = OTLPSpanExporter(endpoint=address if address.endswith(_PATH) else address + _PATH)
    return OtelTracer(BatchSpanProcessor(exporter), ratio=ratio, version=version)


class OtelTracer:
    """Implements `Tracer` with the OpenTelemetry SDK, without its global state."""

    on = True

    def __init__(self, processor: "SpanProcessor", *, ratio: float, version: str) -> None:
        """Spans that end go to `processor`."""
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._api = trace
        self._propagator = TraceContextTextMapPropagator()
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=Resource.create({"service.name": "footnote", "service.version": version}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("footnote", version)
        self._kinds = {kind.name.lower(): kind for kind in trace.SpanKind}

    def start(
        self,
        name: str,
        *,
        kind: Kind = "internal",
        parent: TraceSpan | str | None = None,
        links: Sequence[str] = (),
        attributes: Mapping[str, Attribute] | None = None,
        start_ns: int | None = None,
    ) -> TraceSpan:
        """See `Tracer.start`."""
        linked = [self._api.get_current_span(self._remote(link)).get_span_context() for link in links]
        span = self._tracer.start_span(
            name,
            context=self._context(parent),
            kind=self._kinds[kind],
            attributes=attributes,
            links=[self._api.Link(context) for context in linked if context.is_valid],
            start_time=start_ns,
        )
        return OtelSpan(span)

    def close(self) -> None:
        """See `Tracer.close`."""
        self._provider.shutdown()

    def _context(self, parent: TraceSpan | str | None) -> "Context":
        if isinstance(parent, OtelSpan):
            return self._api.set_span_in_context(parent.sdk, self._remote(None))
        return self._remote(parent if isinstance(parent, str) else None)

    def _remote(self, traceparent: str | None) -> "Context":
        from opentelemetry.context import Context

        return self._propagator.extract({"traceparent": traceparent} if traceparent else {}, context=Context())


class OtelSpan:
    """Implements `TraceSpan` with `sdk`, a span of the OpenTelemetry SDK."""

    def __init__(self, sdk: "SdkSpan") -> None:
        self.sdk = sdk

    @property
    def traceparent(self) -> str | None:
        """The header of W3C Trace Context, version 00."""
        context = self.sdk.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & _SAMPLED:02x}"

    def rename(self, name: str) -> None:
        """See `TraceSpan.rename`."""
        self.sdk.update_name(name)

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""
        self.sdk.set_attributes(attributes)

    def end(self, *, error: str | None = None, at_ns: int | None = None) -> None:
        """See `TraceSpan.end`. Of an error only the type is sent, since messages may quote user text."""
        from opentelemetry.trace import Status, StatusCode

        if not self.sdk.is_recording():
            return
        if error is not None:
            self.sdk.set_attribute("error.type", error)
            self.sdk.set_status(Status(StatusCode.ERROR))
        self.sdk.end(at_ns)
