"""app.outbound.web_pages fetches public web pages safely, tested with fake names and connections."""

import gzip
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Any

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import UrlNotAllowed, UrlNotFetched
from app.outbound.web_pages import WebPages, is_public

PUBLIC = "93.184.215.14"


class Names:
    """A resolver that knows some names, reads numbers as the system does, and remembers what it was asked."""

    def __init__(self, known: dict[str, list[list[str]]] | None = None) -> None:
        self._known = known or {}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host in self._known:
            answers = self._known[host]
            return answers.pop(0) if len(answers) > 1 else answers[0]
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return [str(address[0]) for *_, address in found]


class Wire(httpcore.NetworkBackend):
    """Connections that answer what they are told to, by turns, and remember where they went."""

    def __init__(self, *answers: Iterable[bytes]) -> None:
        self._answers = list(answers)
        self.connected: list[tuple[str, int]] = []
        self.secured: list[str | None] = []
        self.sent = bytearray()

    def answer_instead(self, *answers: Iterable[bytes]) -> None:
        """Answer the next connections so."""
        self._answers = list(answers)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        self.connected.append((host, port))
        return Stream(self, self._answers.pop(0))


class Stream(httpcore.NetworkStream):
    def __init__(self, wire: Wire, pieces: Iterable[bytes]) -> None:
        self._wire = wire
        self._pieces = iter(pieces)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return next(self._pieces, b"")

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._wire.sent += buffer

    def close(self) -> None:
        pass

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._wire.secured.append(server_hostname)
        return self


def answer(body: bytes, *headers: str, status: str = "200 OK") -> list[bytes]:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return ["\r\n".join([*lines, "", ""]).encode(), body]


def redirect(to: str) -> list[bytes]:
    return answer(b"", f"Location: {to}", status="302 Found")


def fetched(pages: WebPages, url: str) -> tuple[str, str, bytes]:
    with pages.open(url) as page:
        return page.url, page.filename, b"".join(page.blocks)


def pages_of(wire: Wire, names: Names | None = None, **more: Any) -> WebPages:
    known = names or Names({"example.com": [[PUBLIC]], "other.example": [["93.184.215.15"]]})
    return WebPages(resolve=known, backend=wire, **more)


def test_a_page_is_fetched_from_the_resolved_address_under_its_own_name():
    wire = Wire(answer(b"<html>Hello</html>"))

    url, filename, body = fetched(pages_of(wire), "http://example.com/a/report%20one.html?x=1#part")

    assert (url, filename, body) == (
        "http://example.com/a/report%20one.html?x=1",
        "report one.html",
        b"<html>Hello</html>",
    )
    assert wire.connected == [(PUBLIC, 80)]
    assert wire.sent.startswith(b"GET /a/report%20one.html?x=1 HTTP/1.1\r\n")
    assert b"Host: example.com\r\n" in wire.sent


def test_over_tls_the_certificate_is_checked_for_the_name():
    wire = Wire(answer(b"x"))
    fetched(pages_of(wire), "https://example.com/")

    assert wire.connected == [(PUBLIC, 443)]
    assert wire.secured == ["example.com"]


def test_a_page_without_a_name_in_its_address_has_its_hosts():
    assert fetched(pages_of(Wire(answer(b"x"))), "http://example.com/")[1] == "example.com"


def test_redirects_are_followed_each_to_its_own_address():
    wire = Wire(redirect("//other.example/b"), redirect("/c.txt"), answer(b"there"))

    url, filename, body = fetched(pages_of(wire), "http://example.com/a")

    assert (url, filename, body) == ("http://other.example/c.txt", "c.txt", b"there")
    assert wire.connected == [(PUBLIC, 80), ("93.184.215.15", 80), ("93.184.215.15", 80)]


def test_the_sixth_redirect_is_not_followed():
    wire = Wire(*[redirect("/again") for _ in range(6)])

    with pytest.raises(UrlNotFetched, match="redirects more than 5"):
        fetched(pages_of(wire), "http://example.com/")
    assert len(wire.connected) == 6


@pytest.mark.parametrize(
    "reply",
    [
        answer(b"no", status="404 Not Found"),
        answer(b"", status="204 No Content"),
        answer(gzip.compress(b"x"), "Content-Encoding: gzip"),
        [b"this is not HTTP\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", b""],
        [b""],
    ],
)
def test_what_is_no_whole_page_is_said_to_be_none(reply):
    with pytest.raises(UrlNotFetched):
        fetched(pages_of(Wire(reply)), "http://example.com/")


def test_a_name_without_an_address_is_said_to_have_none():
    wire = Wire()

    with pytest.raises(UrlNotFetched, match="can be found"):
        fetched(pages_of(wire), "http://nowhere.example/")
    assert wire.connected == []


class Clock:
    """Time that passes with every look at it."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        self.now += self._step
        return self.now


@pytest.mark.parametrize("where", ["headers", "body"])
def test_a_server_that_sends_a_byte_now_and_then_is_left_at_the_deadline(where):
    def dripping() -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + (b"\r\n" if where == "body" else b"")
        for _ in range(100_000):
            yield b"1\r\nx\r\n" if where == "body" else b"X: y\r\n"
        raise AssertionError("it was heard to the end")

    with pytest.raises(UrlNotFetched, match="too long"):
        fetched(pages_of(Wire(dripping()), seconds=60, clock=Clock(1.0)), "http://example.com/")


def test_what_the_reader_of_a_page_raises_is_not_taken_for_the_pages_failure():
    with pytest.raises(ZeroDivisionError), pages_of(Wire(answer(b"x"))).open("http://example.com/"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.0.3", "169.254.169.254", "172.16.0.1", "192.0.2.1",
        "192.168.0.1", "192.88.99.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808",
        "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "fc00::1", "fd12::1", "fe80::1",
        "fe80::1%eth0", "ff02::1", "", "localhost", "1.2.3", "2130706433",
    ],
)  # fmt: skip
def test_an_address_that_is_not_global_unicast_is_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::1"])
def test_a_global_unicast_address_is_public(address):
    assert is_public(address)


@given(st.ip_addresses(v=4, network="10.0.0.0/8") | st.ip_addresses(v=6, network="fc00::/7"))
def test_no_private_address_is_public_however_it_is_mapped(address):
    assert not is_public(str(address))
    if address.version == 4:
        assert not is_public(f"::ffff:{address}")


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://user@", "ftp://", "http:\\\\"]))
def test_whatever_is_sent_as_an_address_ends_in_a_refusal_or_at_a_public_address(text, scheme):
    wire = Wire(*[answer(b"x")] * 2)

    def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14"] if host.endswith("e") else ["127.0.0.1"]

    with suppress(UrlNotAllowed, UrlNotFetched):  # the refusals it may end in; anything else fails the test
        fetched(WebPages(resolve=resolve, backend=wire), scheme + text)
    assert {address for address, _ in wire.connected} <= {PUBLIC}
