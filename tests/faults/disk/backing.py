"""A process that backs a data dir up whenever it is asked, while the disk fails under it too.

`python -m tests.faults.disk.backing DATA_DIR` reads paths, one a line, and answers each with the name of the error that
refused the backup, or with an empty line.
"""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from app.settings import Settings
from tests.backups import back_up
from tests.faults.disk.server import FailingServer
from tests.processes import running

_HERE = Path(__file__).parents[3]


class BackupProcess:
    """Makes backups of a server's data dir; starting it takes seconds, a backup does not."""

    def __init__(self, server: FailingServer) -> None:
        """Start the process."""
        command = [sys.executable, "-m", "tests.faults.disk.backing", str(server.data_dir)]
        self._until = ExitStack()
        self._process = self._until.enter_context(
            running(command, cwd=_HERE, env=server.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )

    def back_up(self, target: Path) -> str:
        """Replace a backup; the name of the error that refused it, empty where none did."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{target}\n".encode())
        self._process.stdin.flush()
        answer = self._process.stdout.readline().decode()
        assert answer.endswith("\n"), "the process has ended"
        return answer.strip()

    def close(self) -> None:
        """End the process."""
        self._until.close()


def refusal_of(settings: Settings, target: Path) -> str:
    """The name of the error that refuses a backup, empty where it is made."""
    try:
        back_up(settings, target, force=True)
    except Exception as error:  # noqa: BLE001 - the test knows which of them are refusals
        return type(error).__name__
    return ""


if __name__ == "__main__":
    its_settings = Settings(data_dir=Path(sys.argv[1]), _env_file=None)
    for line in sys.stdin:
        sys.stdout.write(f"{refusal_of(its_settings, Path(line.strip()))}\n")
        sys.stdout.flush()
