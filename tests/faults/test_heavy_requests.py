"""FAULTS.md C11 and D11: no single request holds the event loop, or takes memory out of proportion to its size."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.faults.forked import ForkedServer
from tests.faults.heavy import HEAVY, Heavy
from tests.fuzz.application import Served, served
from tests.server import ADMIN_KEY

MOST_TIMES, MOST_BESIDE = 10, 50 << 20
"""A request may raise the server's memory by so many times its own size, and so many bytes besides."""
_SECONDS = 60.0


def send(url: str, heavy: Heavy, body: bytes) -> httpx.Response | None:
    """The answer; None where the server hung up on a body that it did not want to read."""
    headers = {"Content-Type": heavy.kind} | ({"Authorization": f"Bearer {ADMIN_KEY}"} if heavy.signed else {})
    with suppress(httpx.TransportError), httpx.Client(base_url=url, trust_env=False, timeout=_SECONDS) as http:
        return http.request(heavy.method, heavy.path, content=body, headers=headers)
    return None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("heavy") / "data") as server:
        yield server


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("heavy", HEAVY, ids=str)
def test_c11_a_heavy_request_does_not_hold_the_event_loop(server: Served, heavy: Heavy) -> None:
    body = heavy.body()
    server.watch.forget()

    answer = send(server.url, heavy, body)

    assert server.watch.noted() == []
    assert httpx.get(f"{server.url}/healthz", trust_env=False, timeout=60).status_code == 200
    assert answer is None or answer.status_code < 500
    assert answer is None or answer.status_code < 400 or len(answer.content) <= 16 << 10


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedServer]:
    with forked_server(tmp_path_factory.mktemp("forked")) as server:
        yield server


@pytest.fixture
def forked(shared: ForkedServer, heavy: Heavy, tmp_path: Path) -> Iterator[ForkedServer]:
    """A server that works on nothing else: one of its own for a request that leaves it work."""
    if not heavy.read_later:
        yield shared
        return
    with forked_server(tmp_path) as server:
        yield server


@contextmanager
def forked_server(folder: Path) -> Iterator[ForkedServer]:
    server = ForkedServer(folder / "data").start()
    try:
        yield server
    finally:
        server.close()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel does not count peaks of memory")
@pytest.mark.parametrize("heavy", HEAVY, ids=str)
def test_d11_a_heavy_request_takes_memory_in_proportion(forked: ForkedServer, heavy: Heavy) -> None:
    body = heavy.body()
    before = psutil.Process(forked.pid).memory_info().rss
    Path(f"/proc/{forked.pid}/clear_refs").write_text("5")  # the peak begins anew (proc(5))

    answer = send(str(forked.http.base_url), heavy, body)

    raised = _peak(forked.pid) - before
    assert raised <= MOST_TIMES * len(body) + MOST_BESIDE, f"{raised >> 20} MiB for {len(body) >> 10} KiB"
    assert answer is None or answer.status_code < 500
    assert forked.alive()


def _peak(pid: int) -> int:
    """The most resident bytes of a process since the peak began anew."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no peak")
