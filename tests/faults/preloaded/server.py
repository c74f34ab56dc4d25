"""A server in a process of its own that calls a library of ours instead of the C library's functions of files."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.faults.forked import Application, ForkedServer
from tests.faults.metered import metered
from tests.faults.preloaded.served import named_as
from tests.processes import footnote, running
from tests.server import ADMIN_KEY

_HERE = Path(__file__).parents[3]
_STARTING_SECONDS = 120.0
DATA = "data"


def cannot_preload() -> str | None:
    """Why no library can be put before the C library on this machine, None where one can."""
    if not sys.platform.startswith("linux"):
        return "a library is put before the C library on Linux only"
    if shutil.which("cc") is None:
        return "there is no C compiler (cc)"
    return None


def built(source: Path, folder: Path) -> Path:
    """The shared library that is built of a C file."""
    library = folder / source.with_suffix(".so").name
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library


class PreloadedServer(ForkedServer):
    """A server whose data dir is `root / DATA`, started with a library built of `source` and with `variables` set."""

    def __init__(
        self,
        folder: Path,
        source: Path,
        application: Application = metered,
        *,
        variables: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """Build the library; nothing is started.

        Args:
            folder: Gets the library, and the folder `root`.
            source: The library, in C.
            application: What is served.
            variables: Of the environment, for the library.
            within: A command that runs the command it is given, to start the server in.
        """
        self.root = folder / "disk"
        self.root.mkdir()
        super().__init__(self.root / DATA, application)
        self.environment = {**os.environ, "LD_PRELOAD": str(built(source, folder)), **(variables or {})}
        self._within = within
        self._serves = named_as(application)
        self._processes = ExitStack()
        self._served: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Serve, and wait until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        module = "tests.faults.preloaded.served"
        command = [*self._within, sys.executable, "-m", module, self._serves, str(self.data_dir), str(port)]
        self._served = self._processes.enter_context(running(command, cwd=_HERE, env=self.environment))
        self.http.close()
        self.http = self._client(f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + _STARTING_SECONDS
        while time.monotonic() < deadline:
            assert self._served.poll() is None, self.log()[-2000:]
            try:
                if self.http.get("/healthz").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def serves(self) -> bool:
        """Whether the process still runs."""
        return self._served is not None and self._served.poll() is None

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """The `footnote` command on its data dir, with the library and in the same surroundings, while it serves."""
        environment = {**self.environment, "FOOTNOTE_DATA_DIR": str(self.data_dir)}
        command = [*self._within, *footnote(*arguments)]
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=300)

    def back_up(self, target: Path) -> None:
        """`footnote backup`, while it serves."""
        done = self.run("backup", str(target))
        assert done.returncode == 0, done.stderr

    def end(self, *, gently: bool) -> None:
        """SIGTERM or SIGKILL, and wait."""
        if self._served is not None:
            (self._served.terminate if gently else self._served.kill)()
            self._served.wait(60)

    def close(self) -> None:
        self.http.close()
        self._processes.close()

    def _client(self, url: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)
