"""The ports to a tracing system, `Tracer` and `TraceSpan`, and implementations that do nothing and import nothing.

Names follow OpenTelemetry: a span is one piece of work with a beginning, an end and a parent. Its identity crosses
processes in the `traceparent` header of W3C Trace Context. Attributes are counts and our own names, never user text.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

Attribute: TypeAlias = str | int | float | bool
Kind: TypeAlias = Literal["internal", "server", "client", "producer", "consumer"]


class TraceSpan(Protocol):
    """Port: one piece of work. Safe to use from any thread; calls after `end` are ignored.

    Example:
        >>> span = tracer.start("rerank")
        >>> span.note({"footnote.passages": 40})
        >>> span.end()
    """

    @property
    def traceparent(self) -> str | None:
        """Its identity as a W3C header; None if traces are off."""

    def rename(self, name: str) -> None:
        """Change its name; a request's route is known only after its span has begun."""

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""

    def end(self, *, error: str | None = None, at_ns: int | None = None) -> None:
        """End the span.

        Args:
            error: The type or code of an error, never its message.
            at_ns: The time in Unix nanoseconds; None is now.
        """


class Tracer(Protocol):
    """Port: starts spans. Safe to use from any thread.

    Example:
        >>> span = tracer.start("GET /v1/models", kind="server", parent=headers.get("traceparent"))
        >>> span.end()
    """

    @property
    def on(self) -> bool:
        """Whether traces are on."""

    def start(
        self,
        name: str,
        *,
        kind: Kind = "internal",
        parent: "TraceSpan | str | None" = None,
        links: Sequence[str] = (),
        attributes: Mapping[str, Attribute] | None = None,
        start_ns: int | None = None,
    ) -> TraceSpan:
        """Start a span.

        Args:
            name: One of few, such as a route's template or a station.
            kind: The side of a call it is on.
            parent: A span of this process, or the `traceparent` of another; an invalid one counts as none.
            links: The `traceparent`s of other traces that led to it.
            attributes: Its first attributes.
            start_ns: Its beginning in Unix nanoseconds; None is now.
        """

    def close(self) -> None:
        """Send the ended spans and stop tracing."""


class _NoSpan:
    traceparent: str | None = None

    def rename(self, name: str) -> None:  # noqa: ARG002 - the port's signature
        return None

    def note(self, attributes: Mapping[str, Attribute]) -> None:  # noqa: ARG002 - the port's signature
        return None

    def end(self, *, error: str | None = None, at_ns: int | None = None) -> None:  # noqa: ARG002 - as above
        return None


class _NoTracer:
    on = False

    def start(
        self,
        name: str,  # noqa: ARG002 - the port's signature
        *,
        kind: Kind = "internal",  # noqa: ARG002 - as above
        parent: "TraceSpan | str | None" = None,  # noqa: ARG002 - as above
        links: Sequence[str] = (),  # noqa: ARG002 - as above
        attributes: Mapping[str, Attribute] | None = None,  # noqa: ARG002 - as above
        start_ns: int | None = None,  # noqa: ARG002 - as above
    ) -> TraceSpan:
        return NO_SPAN

    def close(self) -> None:
        return None


NO_SPAN: TraceSpan = _NoSpan()
NO_TRACES: Tracer = _NoTracer()
