"""How long `footnote serve` takes to help, to listen, and to be ready: `python -m tests.bench.service.start`."""

import argparse
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_COMMAND = [sys.executable, "-c", "from app.cli import main; main()"]


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds since the process was begun; `stalled` is the longest wait for /healthz once it listened."""

    listening: float
    ready: float
    stalled: float
    stopped: float


def main() -> None:
    """Print medians, and each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    for arguments in (["--help"], ["serve", "--help"]):
        taken = [_seconds(arguments) for _ in range(10)]
        print(f"{' '.join(arguments)}: median {statistics.median(taken):.2f} s of {len(taken)}, worst {max(taken):.2f}")
    starts = [_start() for _ in range(runs)]
    for field in ("listening", "ready", "stalled", "stopped"):
        values = [getattr(start, field) for start in starts]
        print(f"{field}: median {statistics.median(values):.2f} s, all {[round(value, 2) for value in values]}")


def _seconds(arguments: list[str]) -> float:
    began = time.monotonic()
    subprocess.run([*_COMMAND, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def _start() -> Start:
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
        probe.close()
        settings = {"FOOTNOTE_DATA_DIR": f"{folder}/data", "FOOTNOTE_PORT": str(port), "FOOTNOTE_ADMIN_KEY": "k" * 24}
        environment = {**os.environ, **settings, "PYTHONPATH": str(Path.cwd())}
        began = time.monotonic()
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen([*_COMMAND, "serve"], env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            listening, stalled = 0.0, 0.0
            while True:
                assert process.poll() is None, Path(folder, "log").read_text()
                asked = time.monotonic()
                try:
                    status, _ = _get(port, "/healthz")
                except OSError:
                    time.sleep(0.01)
                    continue
                if listening:
                    stalled = max(stalled, time.monotonic() - asked)
                listening = listening or time.monotonic() - began
                status, _ = _get(port, "/readyz")
                if status == 200:
                    break
                time.sleep(0.005)
            ready, told = time.monotonic() - began, time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            return Start(listening, ready, stalled, time.monotonic() - told)
        finally:
            process.kill()
            process.wait()


def _get(port: int, path: str) -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


if __name__ == "__main__":
    main()
