"""Connections whose clients send no whole header, or read no response, are closed; honest slow ones are not."""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from tests.app.server.certificate import certificate_for_loopback
from tests.app.server.listening import listening
from tests.installation import installed
from tests.server import ADMIN_KEY

LIMIT_S = 0.6
PATIENCE_S = 15
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
AUTHORIZED = f"Host: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\n".encode()

Connect = Callable[[], socket.socket]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    data_dir: Path = tmp_path_factory.mktemp("connections") / "data"
    with build(Settings(data_dir=installed(data_dir), admin_key=ADMIN_KEY, _env_file=None), with_models=False) as state:
        yield state


@pytest.fixture(scope="module", params=["plain", "tls"])
def connect(
    request: pytest.FixtureRequest, state: State, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connect]:
    """Opens connections to a server that gives a header `LIMIT_S` seconds."""
    if request.param == "plain":
        with listening(state, header_timeout_s=LIMIT_S) as served:
            yield lambda: connected(served.port)
        return
    certificate, key = certificate_for_loopback(tmp_path_factory.mktemp("certificate"))
    trusted = ssl.create_default_context(cafile=str(certificate))
    with listening(state, header_timeout_s=LIMIT_S, tls_cert=certificate, tls_key=key) as served:
        yield lambda: trusted.wrap_socket(connected(served.port), server_hostname="127.0.0.1")


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server hangs up without a word; the socket's timeout says how long that may take."""
    try:
        return connection.recv(1 << 16) == b""
    except (ConnectionError, ssl.SSLError):
        return True


def response(connection: socket.socket) -> bytes:
    """One response, with a Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
    while len(body) < int(length.split(b":")[1]):
        body += some(connection)
    return head + b"\r\n\r\n" + body


def some(connection: socket.socket) -> bytes:
    received = connection.recv(1 << 16)
    assert received, "the server hung up"
    return received


def trickle(connection: socket.socket, data: bytes, *, seconds: float) -> bool:
    """Sends a byte at a time, for `seconds` in all; whether the server heard it to the end."""
    pause = seconds / len(data)
    for position in range(len(data)):
        try:
            connection.sendall(data[position : position + 1])
        except (ConnectionError, ssl.SSLError):
            return False
        time.sleep(pause)
    return True


@contextmanager
def within(most: float, *, least: float = 0.0) -> Iterator[None]:
    """The block takes so many seconds."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert least <= took <= most, f"it took {took:.2f} s"


@pytest.mark.parametrize(
    "sent", [b"", b"G", b"GET / HTTP/1.1\r\nX: ", HEALTH[:-2]], ids=["nothing", "byte", "half", "most"]
)
def test_a_connection_that_sends_no_whole_header_is_closed(connect, sent):
    with connect() as connection, within(PATIENCE_S, least=LIMIT_S / 2):
        if sent:
            connection.sendall(sent)
        assert is_closed(connection)


def test_a_header_that_comes_a_byte_at_a_time_is_not_waited_for(connect):
    with connect() as connection:
        heard = trickle(connection, HEALTH, seconds=3 * LIMIT_S)
        assert not heard or is_closed(connection)


def test_between_two_requests_a_connection_may_be_idle_but_the_next_header_may_not_be_late(connect):
    with connect() as connection:
        for _ in range(2):
            connection.sendall(HEALTH)
            assert response(connection).startswith(b"HTTP/1.1 200")
            time.sleep(2 * LIMIT_S)  # idle for longer than a header may take
        connection.sendall(HEALTH[:10])
        with within(PATIENCE_S, least=LIMIT_S / 2):
            assert is_closed(connection)


def test_a_body_that_goes_on_after_its_response_does_not_keep_the_connection(connect):
    with connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n")
        assert response(connection).startswith(b"HTTP/1.1 200")
        assert not trickle(connection, b"x" * 200, seconds=20 * LIMIT_S)


def test_a_slow_but_honest_upload_is_not_cut(connect):
    body = b'{"filename": "slow.txt", "text": "Words that come slowly."}'
    head = b"POST /v1/documents HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with connect() as connection:
        connection.sendall(head % (AUTHORIZED, len(body)))
        assert trickle(connection, body, seconds=3 * LIMIT_S)
        answer = response(connection)

    assert answer.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")), answer


def test_a_long_event_stream_is_not_cut(connect, state):
    with connect() as connection, connect() as other:
        body = b'{"filename": "watched.txt", "text": "Words to wait for."}'
        head = b"POST /v1/documents HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        other.sendall(head % (AUTHORIZED, len(body)) + body)
        response(other)
        document = state.corpus.documents.list(tenant_id="default", q="watched.txt", limit=1)[0][0]
        connection.sendall(b"GET /v1/documents/%s/events HTTP/1.1\r\n%s\r\n" % (document.id.encode(), AUTHORIZED))
        received = some(connection)
        time.sleep(2 * LIMIT_S)
        other.sendall(b"DELETE /v1/documents/%s HTTP/1.1\r\n%s\r\n" % (document.id.encode(), AUTHORIZED))
        assert response(other).startswith(b"HTTP/1.1 200")
        while b"event: done" not in received:
            received += some(connection)


def test_pipelined_requests_are_answered(connect):
    with connect() as connection:
        connection.sendall(HEALTH * 3)
        received = b""
        while received.count(b"HTTP/1.1 200") < 3 or not received.endswith(b"}"):
            received += some(connection)


def test_a_connection_whose_client_reads_nothing_is_given_up(state):
    with (
        listening(state, write_timeout_s=LIMIT_S, keep_alive_s=1, send_buffer=4096) as served,
        socket.socket() as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", served.port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: served.connections == 1)
        until(lambda: served.connections == 0)


def test_a_client_that_reads_slowly_gets_the_whole_response(state):
    with (
        listening(state, write_timeout_s=LIMIT_S, keep_alive_s=1, send_buffer=4096) as served,
        socket.socket() as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", served.port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        began, received = time.monotonic(), b""
        while piece := connection.recv(1 << 14):
            received += piece
            if time.monotonic() - began < 5 * LIMIT_S:
                time.sleep(LIMIT_S / 8)
    head, _, body = received.partition(b"\r\n\r\n")

    assert f"content-length: {len(body)}".encode() in head.lower()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)
