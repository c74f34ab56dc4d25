"""Observability of one request: a log line, metrics by route, and a span where requests are traced.

The path is recorded as the route's template only: ids, query strings and bodies are never recorded.
"""

import time
from contextlib import ExitStack

import structlog
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from app.access.routes import is_public
from app.api.root_path import route_path
from app.telemetry.logs import logger
from app.telemetry.timing import Instruments
from app.types import Principal

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FAILED = 500


class Observation:
    """Records one request, from its arrival to the end of its response.

    Create it in the task that handles the request: until `end`, every log line of that task has the request's id, and
    the times of its stations are recorded for the request.
    """

    def __init__(self, scope: Scope, instruments: Instruments, request_id: str) -> None:
        self._scope = scope
        self._metrics = instruments.metrics
        self._started = time.perf_counter()
        self._method = scope["method"] if scope["method"] in _METHODS else "_OTHER"  # as OpenTelemetry names them
        self.work = instruments.request(
            self._method,
            parent=Headers(scope=scope).get("traceparent"),
            attributes={"http.request.method": self._method, "footnote.request_id": request_id},
        )
        self._entered = ExitStack()
        self._entered.enter_context(structlog.contextvars.bound_contextvars(request_id=request_id))
        self._entered.enter_context(self.work.active())

    def end(self, status: int) -> None:
        """Record the end of the response; `status` is 0 when none was sent."""
        seconds, route, problem = time.perf_counter() - self._started, route_of(self._scope), self.work.problem
        self._metrics.requests.labels(self._method, route, str(status)).inc()
        self._metrics.latency.labels(self._method, route).observe(seconds)
        if problem is not None:
            self._metrics.refused(problem, unit=self.work.refused_by)
        principal = self._scope["state"].get("principal")
        known = {"tenant": principal.tenant_id, "key_id": principal.key_id} if isinstance(principal, Principal) else {}
        said = {"problem": problem} if problem is not None else {}
        log = logger().debug if is_public(route_path(self._scope)) else logger().info
        log("request", method=self._method, route=route, status=status, ms=round(seconds * 1000, 1), **known, **said)
        self.work.span.rename(f"{self._method} {route}")
        self.work.span.note({"http.route": route, "http.response.status_code": status})
        self.work.span.end(error=problem or "internal-error" if status >= _FAILED or status == 0 else None)
        self._entered.close()


def route_of(scope: Scope) -> str:
    """The route's template, so that ids create no time series of their own; `other` without a route."""
    route = scope.get("route")
    if route is not None:
        return str(getattr(route, "path", "other"))
    for candidate in scope["app"].router.routes:
        match, _ = candidate.matches(scope)
        if match is Match.FULL:
            return str(getattr(candidate, "path", "other"))
    return "other"
