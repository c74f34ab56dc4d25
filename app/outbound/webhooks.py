"""Posts JSON to webhook URLs, on the public internet only unless the installation allows a host.

The checks are those of fetched pages (`app.outbound.web_pages`): the address is parsed once and resolved once, and
the connection goes to the resolved address. Redirects are not followed; only the response's status is read.
"""

import hashlib
import hmac
import json
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence

import httpcore
import httpx

from app.errors import InvalidRequest, SetupError, UrlNotAllowed, UrlNotFetched
from app.outbound.web_pages import Guard, Resolve, addresses_of, is_public, read_address
from app.telemetry.timing import traceparent
from app.telemetry.tracing import NO_TRACES, Tracer

_SECONDS = 10.0  # for one delivery in all
_HEADERS = (("User-Agent", "Footnote"), ("Content-Type", "application/json"))
_ANY_PORT = range(1, 65_536)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s%/@:\[\]]+)(?P<port>:[0-9]+)?")
DEFAULT_PORTS = {"http": 80, "https": 443}
_THIS_MACHINE = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_ADDRESS = re.compile(r"[:%]|(?:^|\.)(?:[0-9]*|0x[0-9a-f]*)$")  # no name ends in a number (URL Standard, 3.5)


class NotDelivered(Exception):
    """The receiver refused the delivery or is unreachable; the message gives only its status."""


class Webhooks:
    """Delivers to webhooks. Safe to use from any thread."""

    def __init__(
        self,
        *,
        hosts: str = "",
        resolve: Resolve | None = None,
        backend: httpcore.NetworkBackend | None = None,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
        tracer: Tracer = NO_TRACES,
        secret: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        """Sends nothing yet.

        Args:
            hosts: `host` (its ports 80 and 443) or `host:port`, comma-separated: receivers that need not be public.
            resolve: Gives the addresses of a host.
            backend: Connects to them.
            seconds: The longest one delivery may take.
            clock: Seconds that only go forward.
            tracer: Each delivery is a span of the current or a new trace, which the receiver can continue.
            secret: Signs each delivery (`signature`); "" signs none.
            now: Unix seconds, which a signature covers.

        Raises:
            SetupError: `hosts` cannot be read.
        """
        self._named = named_hosts(hosts)
        self._resolve = resolve or addresses_of
        self._backend = backend or httpcore.SyncBackend()
        self._seconds = seconds
        self._clock = clock
        self._tracer = tracer
        self._secret = secret.encode()
        self._now = now

    def check(self, url: str) -> None:
        """Checks that `url` may receive deliveries; its host name is resolved at each delivery.

        Raises:
            InvalidRequest: It is none, or it is not public, by numbers or by a name of this machine.
        """
        try:
            location, named = self._target(url)
            if not named and _is_inside(location.raw_host.decode("ascii")):
                raise UrlNotAllowed(
                    "The address is not on the public internet; whoever runs the server can name it in "
                    "FOOTNOTE_WEBHOOK_HOSTS."
                )
        except UrlNotAllowed as error:
            raise InvalidRequest(str(error), param="webhook_url") from None

    def post(self, url: str, body: Mapping[str, object]) -> None:
        """Deliver `body` once.

        Raises:
            NotDelivered: It was not taken: no status of success came back in time.
        """
        span = self._tracer.start("webhook", kind="client", parent=traceparent())
        headers = _HEADERS if span.traceparent is None else (*_HEADERS, ("traceparent", span.traceparent))
        error: str | None = NotDelivered.__name__
        try:
            self._post(url, body, headers)
            error = None
        finally:
            span.end(error=error)

    def _post(self, url: str, body: Mapping[str, object], headers: Sequence[tuple[str, str]]) -> None:
        try:
            location, named = self._target(url)
            deadline = self._clock() + self._seconds
            guard = Guard(self._backend, self._resolve, deadline=deadline, clock=self._clock, public_only=not named)
            target = httpcore.URL(
                scheme=location.raw_scheme, host=location.raw_host, port=location.port, target=location.raw_path
            )
            content = json.dumps(body).encode()
            if self._secret:
                timestamp = str(int(self._now()))
                signed = signature(self._secret, timestamp, content)
                headers = (*headers, ("X-Footnote-Timestamp", timestamp), ("X-Footnote-Signature", signed))
            with (
                httpcore.ConnectionPool(network_backend=guard, http2=False) as pool,
                pool.stream("POST", target, headers=headers, content=content) as response,
            ):
                status = response.status
        except (UrlNotAllowed, UrlNotFetched) as error:
            raise NotDelivered(str(error)) from None
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            raise NotDelivered("The receiver could not be reached, or took too long.") from None
        if not 200 <= status < 300:
            raise NotDelivered(f"The receiver answered {status}.")

    def _target(self, url: str) -> tuple[httpx.URL, bool]:
        """The parsed URL, and whether the installation allows its host explicitly."""
        location = read_address(url, ports=_ANY_PORT)
        if (location.host, location.port or DEFAULT_PORTS[location.scheme]) in self._named:
            return location, True
        return read_address(url), False


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """The signature of a delivery: `v1=` and the HMAC-SHA256 (RFC 2104) of the timestamp, a full stop and the body.

    A receiver computes it from the bytes it got, compares in constant time, and refuses an old timestamp.

    Args:
        secret: That of FOOTNOTE_WEBHOOK_SECRET.
        timestamp: Unix seconds in decimal, as in `X-Footnote-Timestamp`.
        body: As it was sent.
    """
    return f"v1={hmac.new(secret, timestamp.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def _is_inside(host: str) -> bool:
    """Whether a host is not public by its text alone; no name is resolved.

    The system reads numbers here as it does in a delivery: 127.1, 0x7f000001 and 2130706433 are all 127.0.0.1.
    """
    host = host.rstrip(".")
    if host in _THIS_MACHINE or host.endswith(".localhost"):  # RFC 6761, section 6.3
        return True
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return _ADDRESS.search(host) is not None
    return not all(is_public(str(address[0])) for *_, address in found)


def named_hosts(hosts: str) -> frozenset[tuple[str, int]]:
    """The hosts and ports of FOOTNOTE_WEBHOOK_HOSTS.

    Raises:
        SetupError: It cannot be read.
    """
    named: set[tuple[str, int]] = set()
    for item in filter(None, (part.strip() for part in hosts.split(","))):
        match = _HOST.fullmatch(item)
        try:
            location = read_address(f"http://{item}", ports=_ANY_PORT) if match else None
        except UrlNotAllowed:
            location = None
        if match is None or location is None:
            raise SetupError("FOOTNOTE_WEBHOOK_HOSTS takes host or host:port, comma-separated.")
        ports = [location.port or 80] if match["port"] else DEFAULT_PORTS.values()
        named.update((location.host, port) for port in ports)
    return frozenset(named)
