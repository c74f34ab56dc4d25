"""A server with small stations in a process that starts in a moment, and is killed where one says.

The processes are forked from one that has imported everything, so that hundreds of them can be started and
killed in a test. What a kill point names is watched from outside by the interpreter's own profiling hook: the
code under test is the code that ships.
"""

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import httpx

from app.server.state import State
from app.settings import Settings
from tests.app.evaluation.application import application
from tests.faults.watched import WatchedApplication, holds_in
from tests.server import ADMIN_KEY

_PRELOADED = [
    "tests.faults.forked",
    "tests.app.evaluation.application",
    "app.api.application",
    "app.server.http_server",
    "faiss",
]
_STARTING_SECONDS = 60.0
_ANSWER_SECONDS = 1.0  # a server that was stopped takes a connection and never answers

Application = Callable[[Path], AbstractContextManager[State]]
"""What is served over a data dir: a function of a module, for it is named to another process."""


@dataclass(frozen=True, slots=True)
class KillPoint:
    """The `nth` time a function of ours is entered or left; `function` is `module:qualified name`.

    The process sends itself `sent` there.
    """

    function: str
    when: Literal["call", "return"]
    nth: int = 1
    sent: signal.Signals = signal.SIGKILL

    def __str__(self) -> str:
        return f"{self.when} {self.nth} of {self.function}"


class ForkedServer:
    """The application over a data dir; start it, talk to it, kill it, start it again."""

    def __init__(self, data_dir: Path, application: Application = application, *, drain_s: float = 10.0) -> None:
        self.data_dir = data_dir
        self._drain_s = drain_s
        self._application = application
        self.http = httpx.Client()
        self._process: BaseProcess | None = None

    def start(self, *, kill_at: KillPoint | None = None) -> "ForkedServer":
        """Serve, until it is killed; at `kill_at` it kills itself."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        arguments = (self._application, self.data_dir, port, self._drain_s, kill_at)
        process = context.Process(target=serve, args=arguments, daemon=True)
        process.start()
        self._process = process
        self.http.close()
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {ADMIN_KEY}"},
            timeout=60,
            trust_env=False,
        )
        deadline = time.monotonic() + _STARTING_SECONDS
        while time.monotonic() < deadline:
            if not process.is_alive():
                if process.exitcode == -signal.SIGKILL and kill_at is not None:
                    return self  # it came to its end while it started
                raise AssertionError(f"the server ended with {process.exitcode}: {self.log()[-2000:]}")
            if kill_at is not None and self.stopped():
                return self  # it came to its stop while it started
            try:
                if self.http.get("/healthz", timeout=_ANSWER_SECONDS).status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.02)
        raise AssertionError("the server does not answer")

    @property
    def pid(self) -> int:
        """Of the process that serves."""
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.is_alive()

    def stopped(self) -> bool:
        """Whether a signal has stopped it, and none has let it go on (proc(5))."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def kill(self) -> None:
        """SIGKILL; it has no moment to tidy up."""
        if self._process is not None:
            self._process.kill()
            self._process.join(30)

    def stop(self) -> None:
        """SIGTERM, and wait for it to end by itself."""
        self.signal(signal.SIGTERM)
        assert self.ended() == 0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, and do not wait for what comes of it."""
        os.kill(self.pid, number)

    def ended(self, *, seconds: float = 60.0) -> int | None:
        """The exit status once it ended (a signal's number, negative, where one ended it), None while it lives."""
        assert self._process is not None
        self._process.join(seconds)
        return self._process.exitcode

    def died(self, *, seconds: float) -> bool:
        """Wait for it to be killed at its kill point; false when it still lives."""
        assert self._process is not None
        self._process.join(seconds)
        return not self._process.is_alive()

    def close(self) -> None:
        """Nothing of it is left; fails where something held its event loop."""
        self.http.close()
        self.kill()
        held = holds_in(_held(self.data_dir))
        assert not held, "\n".join(held)

    def log(self) -> str:
        """What it wrote."""
        path = self.data_dir.parent / "forked.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def upload(self, name: str, text: str, **fields: str) -> dict[str, Any]:
        """The document's body as it was acknowledged."""
        response = self.http.post("/v1/documents", files={"file": (name, text.encode())}, data=fields)
        assert response.status_code in {200, 202}, response.text
        body: dict[str, Any] = response.json()
        return body

    def documents(self) -> list[dict[str, Any]]:
        """All of them."""
        found: list[dict[str, Any]] = self.http.get("/v1/documents", params={"limit": 500}).json()["data"]
        return found

    def settled(self, *, seconds: float = 60.0) -> list[dict[str, Any]]:
        """All documents, once none of them is under way."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.documents()
            if all(one["status"] in {"indexed", "failed"} for one in found):
                return found
            time.sleep(0.02)
        raise AssertionError(f"still under way: {[one['status'] for one in found]}")


def serve(
    application: Application, data_dir: Path, port: int, drain_s: float = 10.0, kill_at: KillPoint | None = None
) -> None:
    """The process's whole life, as `footnote serve` has it."""
    from app.api.application import create_app
    from app.server.drain import Drain
    from app.server.http_server import Server, configuration
    from app.server.process import freeze_loaded_objects

    log = (data_dir.parent / "forked.log").open("ab", buffering=0)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    if kill_at is not None:
        watch(kill_at)
    drain = Drain(seconds=drain_s)
    app = create_app(lambda: application(data_dir), version="0", drain=drain)
    if kill_at is None:  # watching for a kill point takes processor time of its own
        app.add_middleware(WatchedApplication, file=_held(data_dir))
    config = configuration(app, Settings(_env_file=None))
    freeze_loaded_objects()
    with socket.create_server(("127.0.0.1", port), backlog=2048) as listener:
        Server(config, drain, state=lambda: app.state.footnote).run(sockets=[listener])


def _held(data_dir: Path) -> Path:
    """The file of what held the loops of the servers over a data dir."""
    return data_dir.parent / "held.jsonl"


def exit_status_of(function: Callable[..., object], *arguments: object, seconds: float = 120) -> int | None:
    """The exit status of a process that runs a module's function; None where it had to be killed after `seconds`."""
    process = multiprocessing.get_context("forkserver").Process(target=function, args=arguments, daemon=True)
    process.start()
    try:
        process.join(seconds)
        return process.exitcode
    finally:
        process.kill()
        process.join(30)


def watch(point: KillPoint) -> None:
    """End this process at `point`, in whichever thread it comes."""
    hook = _watching(point)
    threading.setprofile(hook)
    sys.setprofile(hook)


def _watching(point: KillPoint) -> Callable[[FrameType, str, object], None]:
    """A profiling hook that ends the process at `point`, with nothing flushed or closed."""
    module, name = point.function.split(":")
    left = point.nth
    lock = threading.Lock()

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event != point.when or frame.f_code.co_qualname != name or frame.f_globals.get("__name__") != module:
            return
        with lock:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), point.sent)

    return watch
