"""A server on a loopback port that accepts connections and answers them late, and a way to it past the guard."""

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore

_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: close\r\n\r\nWords."
_STEP_SECONDS = 0.05
_PATIENCE_SECONDS = 10


class SlowPeer:
    """Accepts every connection, and answers none before `release`."""

    def __init__(self, listener: socket.socket) -> None:
        self.port = int(listener.getsockname()[1])
        self._listener = listener
        self._open: list[socket.socket] = []
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._ended = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def accepted(self) -> int:
        """The number of connections that were ever accepted."""
        with self._changed:
            return len(self._open)

    def wait_for(self, connections: int) -> None:
        """Until that many were accepted."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._open) >= connections, timeout=_PATIENCE_SECONDS)
        assert came, f"{self.accepted} connections came, not {connections}"

    def release(self) -> None:
        """Answers all connections with a page, and those that come later at once."""
        self._released.set()
        with self._changed:
            waiting = list(self._open)
        for connection in waiting:
            _answer(connection)

    def serve(self) -> None:
        self._listener.settimeout(_STEP_SECONDS)
        while not self._ended:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with self._changed:
                self._open.append(connection)
                self._changed.notify_all()
            if self._released.is_set():
                _answer(connection)

    def end(self) -> None:
        self._ended = True
        self.release()


class ToLoopback(httpcore.NetworkBackend):
    """Connections that reach a loopback port, whatever public address they are for."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return self._inner.connect_tcp("127.0.0.1", self._port, timeout, local_address, socket_options)


@contextmanager
def slow_peer() -> Iterator[SlowPeer]:
    """A peer that listens until the block ends, and then answers whoever still waits."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        peer = SlowPeer(listener)
        thread = threading.Thread(target=peer.serve, name="slow-peer")
        thread.start()
        try:
            yield peer
        finally:
            peer.end()
            thread.join()


def _answer(connection: socket.socket) -> None:
    with connection:
        if connection.fileno() < 0:
            return  # answered before
        try:
            connection.settimeout(_PATIENCE_SECONDS)
            connection.recv(1 << 16)
            connection.sendall(_PAGE)
        except OSError:
            return  # the caller has gone
