"""A command line, and a server without models that it reaches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from app.client import connect
from app.settings import Settings
from app.types import ServerTarget
from tests.app.cli.command_line import CommandLine
from tests.installation import installed
from tests.server import ADMIN_KEY


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Commands, over an empty data dir as long as nothing else is said."""
    structlog.reset_defaults()  # as in a process of its own: `capture_logs` leaves it configured, as if by `serve`
    line = CommandLine(tmp_path, monkeypatch, capsys)
    line.reach(data_dir=str(installed(tmp_path / "data")))
    return line


@pytest.fixture
def footnote(tmp_path: Path, command_line: CommandLine) -> Iterator[CommandLine]:
    """Commands against a server that runs over the data dir."""
    settings = Settings(data_dir=tmp_path / "data", admin_key=ADMIN_KEY, _env_file=None)
    with connect(ServerTarget(url=None, key=None), settings=settings) as client:
        command_line.reach(url=str(client.http.base_url))
        yield command_line
