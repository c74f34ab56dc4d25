"""What the application says to a tracing system, and the one that listens to nothing: nothing else is imported then.

Names follow OpenTelemetry: a span is one piece of work with a beginning, an end and a parent; W3C Trace Context
carries its identity across processes as a `traceparent` header. Attributes are counts and names of ours, never text.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

Attribute: TypeAlias = str | int | float | bool
Kind: TypeAlias = Literal["internal", "server", "client", "producer", "consumer"]


class Span(Protocol):
    """One piece of work. Safe to use from any thread; whatever comes after `end` is ignored."""

    @property
    def traceparent(self) -> str | None:
        """Its identity as W3C's header; None where nobody traces."""

    def rename(self, name: str) -> None:
        """Its name is known by now: a request's route is found after it has begun."""

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""

    def end(self, *, error: str | None = None, at_ns: int | None = None) -> None:
        """It is done.

        Args:
            error: A name for what went wrong: a type or a code, never a message.
            at_ns: When, in Unix nanoseconds; None is now.
        """


class Tracer(Protocol):
    """Starts spans. Safe to use from any thread."""

    @property
    def on(self) -> bool:
        """Whether anybody listens."""

    def start(
        self,
        name: str,
        *,
        kind: Kind = "internal",
        parent: "Span | str | None" = None,
        links: Sequence[str] = (),
        attributes: Mapping[str, Attribute] | None = None,
        start_ns: int | None = None,
    ) -> Span:
        """A span that runs.

        Args:
            name: Of few different ones: a route's template, a station.
            kind: Which side of a call it is.
            parent: A span of this process or the `traceparent` of another; one that cannot be read counts as none.
            links: `traceparent`s of other traces that led to it.
            attributes: What is known already.
            start_ns: When it began, in Unix nanoseconds; None is now.
        """

    def close(self) -> None:
        """Send what has ended; nothing is traced any more."""


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
        parent: "Span | str | None" = None,  # noqa: ARG002 - as above
        links: Sequence[str] = (),  # noqa: ARG002 - as above
        attributes: Mapping[str, Attribute] | None = None,  # noqa: ARG002 - as above
        start_ns: int | None = None,  # noqa: ARG002 - as above
    ) -> Span:
        return NO_SPAN

    def close(self) -> None:
        return None


NO_SPAN: Span = _NoSpan()
NO_TRACES: Tracer = _NoTracer()
