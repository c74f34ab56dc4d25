"""Fetches a web page for ingestion, and nothing that is not on the public internet.

Server-side request forgery (OWASP, 2023 API7) is refused in one place: the connection itself. A name is
resolved once, every address it gives must be public, and the connection goes to such an address and not to
the name, so that nothing is gained by a name that answers differently next time, by numbers written in
octal, or by a redirect. The address is parsed once, and the connection uses the parsed host.
"""

import ipaddress
import socket
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any
from urllib.parse import unquote

import httpcore
import httpx

from app.errors import UrlNotAllowed, UrlNotFetched

_PORTS = frozenset({80, 443})
_REDIRECTS = 5
_REDIRECTED = frozenset({301, 302, 303, 307, 308})
_LONGEST = 2048  # characters of an address
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 10.0
_HEADERS = (("User-Agent", "Footnote"), ("Accept", "*/*"), ("Accept-Encoding", "identity"))
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")  # global unicast (RFC 4291, section 2.4)
# Addresses that embed another one (6to4, Teredo, its old relays) and so hide the real host.
_TUNNELS = tuple(map(ipaddress.ip_network, ("2002::/16", "2001::/32", "192.88.99.0/24")))

Resolve = Callable[[str, int], Sequence[str]]
"""The IP addresses of a host, as text; raises OSError or UnicodeError where it has none."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """A fetched page: its final URL, its file name from the URL, and a stream of its bytes."""

    url: str
    filename: str
    blocks: Iterable[bytes]


class WebPages:
    """Fetches pages from the public internet over HTTP and HTTPS. Safe to use from any thread."""

    def __init__(
        self,
        *,
        resolve: Resolve | None = None,
        backend: httpcore.NetworkBackend | None = None,
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Resolve names by `resolve` and connect by `backend`; a page may take `seconds` with all its redirects."""
        self._resolve = resolve or addresses_of
        self._backend = backend or httpcore.SyncBackend()
        self._seconds = seconds
        self._clock = clock

    @contextmanager
    def open(self, url: str) -> Iterator[WebPage]:
        """The page at `url`; its bytes must be read inside the `with`.

        Raises:
            UrlNotAllowed: The address, or one it redirects to, is not allowed. Nothing was sent there.
            UrlNotFetched: There is no page, or it takes too long; also while its bytes are read.
        """
        location = read_address(url)
        guard = Guard(self._backend, self._resolve, deadline=self._clock() + self._seconds, clock=self._clock)
        with _domain_errors(), httpcore.ConnectionPool(network_backend=guard, http2=False) as pool:
            for _ in range(_REDIRECTS + 1):
                with _get(pool, location) as response:
                    if response.status not in _REDIRECTED:
                        _require_page(response)
                        yield WebPage(str(location), _name(location), _blocks(response))
                        return
                    location = _next(location, response)
        raise UrlNotFetched(f"The page redirects more than {_REDIRECTS} times.", param="url")


class Guard(httpcore.NetworkBackend):
    """Connects only to public addresses, unless a host is allowed, and enforces one deadline for the whole fetch."""

    def __init__(
        self,
        inner: httpcore.NetworkBackend,
        resolve: Resolve,
        *,
        deadline: float,
        clock: Callable[[], float],
        public_only: bool = True,
    ) -> None:
        self._inner = inner
        self._resolve = resolve
        self._deadline = deadline
        self._clock = clock
        self._public_only = public_only

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connects to an address of `host`, which is resolved once."""
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError):
            raise UrlNotFetched("The address has no server that can be found.", param="url") from None
        if not addresses or (self._public_only and not all(map(is_public, addresses))):
            raise UrlNotAllowed("The address is not on the public internet.", param="url")
        timeout = _left(self._deadline, timeout, self._clock)
        stream = self._inner.connect_tcp(addresses[0], port, timeout, local_address, socket_options)
        return _Timed(stream, deadline=self._deadline, clock=self._clock)


class _Timed(httpcore.NetworkStream):
    """A network stream with one deadline for all reads and writes, so that a slow server cannot hold the connection."""

    def __init__(self, inner: httpcore.NetworkStream, *, deadline: float, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._deadline = deadline
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(self._deadline, timeout, self._clock))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(self._deadline, timeout, self._clock))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, _left(self._deadline, timeout, self._clock))
        return _Timed(inner, deadline=self._deadline, clock=self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def is_public(address: str) -> bool:
    """Whether an IP address, as text, is global unicast by IANA's registries (RFC 6890), and no tunnel's end."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if ip.is_multicast or not ip.is_global or any(ip in network for network in _TUNNELS):
        return False
    return ip.version == 4 or ip in _GLOBAL_IPV6


def addresses_of(host: str, port: int) -> Sequence[str]:
    """Resolves a host with the system's resolver; a `Resolve`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _left(deadline: float, timeout: float | None, clock: Callable[[], float]) -> float:
    left = deadline - clock()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left if timeout is None else min(left, timeout)


def read_address(url: str | httpx.URL, *, ports: Container[int] = _PORTS) -> httpx.URL:
    """Parses a URL and removes its fragment.

    Raises:
        UrlNotAllowed: It is no URL, or its scheme, user name or port is refused.
    """
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise UrlNotAllowed("This is not a web address.", param="url") from None
    if read.scheme not in {"http", "https"} or not read.host:
        raise UrlNotAllowed("A web address begins with http:// or https:// and names a host.", param="url")
    if read.userinfo or "@" in str(url).partition("//")[2].partition("/")[0] or "\\" in str(url):
        raise UrlNotAllowed("A web address with a user name or a backslash in it is not fetched.", param="url")
    if read.port is not None and read.port not in ports:
        raise UrlNotAllowed("Only the ports 80 and 443 are fetched from.", param="url")
    if len(str(read)) > _LONGEST:
        raise UrlNotAllowed(f"A web address has at most {_LONGEST:,} characters.", param="url")
    return read.copy_with(fragment=None)


@contextmanager
def _get(pool: httpcore.ConnectionPool, location: httpx.URL) -> Iterator[httpcore.Response]:
    target = httpcore.URL(
        scheme=location.raw_scheme, host=location.raw_host, port=location.port, target=location.raw_path
    )
    timeouts = {"connect": _CONNECT_SECONDS, "read": _READ_SECONDS, "write": _READ_SECONDS, "pool": _CONNECT_SECONDS}
    with pool.stream("GET", target, headers=_HEADERS, extensions={"timeout": timeouts}) as response:
        yield response


def _next(location: httpx.URL, response: httpcore.Response) -> httpx.URL:
    target = dict(_lowered(response)).get(b"location", b"")
    try:
        return read_address(location.join(target.decode("utf-8")))
    except (httpx.InvalidURL, ValueError):
        raise UrlNotAllowed("The page redirects to something that is not a web address.", param="url") from None


def _require_page(response: httpcore.Response) -> None:
    if response.status != 200:
        raise UrlNotFetched(f"The server answered {response.status} instead of a page.", param="url")
    if dict(_lowered(response)).get(b"content-encoding", b"identity").lower() != b"identity":
        raise UrlNotFetched("The server compressed the page although it was asked not to.", param="url")


def _lowered(response: httpcore.Response) -> Iterator[tuple[bytes, bytes]]:
    return ((name.lower(), value) for name, value in response.headers)


def _blocks(response: httpcore.Response) -> Iterator[bytes]:
    with _domain_errors():
        yield from response.iter_stream()


def _name(location: httpx.URL) -> str:
    return unquote(location.path.rsplit("/", 1)[-1]) or location.host


@contextmanager
def _domain_errors() -> Iterator[None]:
    try:
        yield
    except httpcore.TimeoutException:
        raise UrlNotFetched("The page took too long.", param="url") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol):
        raise UrlNotFetched("The server could not be reached, or it does not speak HTTP.", param="url") from None
