"""Processes that tests start: each has SIGINT at its default, and none outlives the block that started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from app.cli import main; main()"


def footnote(*arguments: str) -> list[str]:
    """The `footnote` command with `arguments`, run by this interpreter.

    A shell without job control starts its background jobs with SIGINT ignored, and every process below inherits that.
    The command sets SIGINT back to its default, as it is where a person types the command.
    """
    return [sys.executable, "-c", _MAIN, *arguments]


@contextmanager
def running(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own. When the block ends, however it ends, the whole session is killed."""
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )
    try:
        yield process
    finally:
        kill_session(process)


def kill_session(process: subprocess.Popen[bytes]) -> int:
    """Kill a process that leads a session, and everything it started; returns its exit status."""
    with suppress(ProcessLookupError):  # it ended, and nothing of its session is left
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait(30)
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    if process.stdout is not None:
        process.stdout.close()
    return status
