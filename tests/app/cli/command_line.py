"""The command as a person types it: `main` with arguments, against a server or a data dir."""

import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.cli import main
from tests.root_log import log_put_back
from tests.server import ADMIN_KEY


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The words of each line."""
        return [line.split() for line in self.out.splitlines()]


class CommandLine:
    """Runs commands in this process, in a folder of their own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.delenv("FOOTNOTE_URL", raising=False)
        patch.delenv("FOOTNOTE_KEY", raising=False)

    def reach(self, **variables: str) -> None:
        """Where the commands go, as FOOTNOTE_ variables."""
        for name, value in variables.items():
            self._patch.setenv(f"FOOTNOTE_{name.upper()}", value)

    def run(self, *arguments: str, key: str = ADMIN_KEY) -> Ended:
        """`footnote ARGUMENTS` with a key; against a data dir none is needed."""
        self._patch.setenv("FOOTNOTE_KEY", key)
        self._patch.setattr(sys, "argv", ["footnote", *arguments])
        self._capture.readouterr()
        mask = os.umask(0)
        os.umask(mask)
        try:
            with log_put_back(), pytest.raises(SystemExit) as ended:
                main()
        finally:
            # The command sets both for its own process, and they would stay for the tests after it.
            gc.enable()
            os.umask(mask)
        out, err = self._capture.readouterr()
        assert "Traceback" not in err
        return Ended(int(ended.value.code or 0), out, err)

    def said(self, *arguments: str, key: str = ADMIN_KEY) -> str:
        """What a command that succeeds says."""
        ended = self.run(*arguments, key=key)
        assert (ended.status, ended.err) == (0, ""), ended
        return ended.out

    def refused(self, *arguments: str, key: str = ADMIN_KEY) -> str:
        """The one sentence of a command that is refused."""
        ended = self.run(*arguments, key=key)
        assert (ended.status, ended.out) == (1, ""), ended
        (line,) = ended.err.splitlines()
        assert line.startswith("footnote: ")
        return line.removeprefix("footnote: ")
