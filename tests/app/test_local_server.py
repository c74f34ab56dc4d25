"""app.local_server: the command line finds the server of its own user, and believes no file that others can write."""

import logging
import os
import socket
import stat
from pathlib import Path

import pytest

from app.backup.data_dir import data_dir_lock, is_locked
from app.client import connect
from app.local_server import LocalServer, announced, local_server
from app.settings import Settings
from app.types import ServerTarget
from tests.installation import installed
from tests.server import ADMIN_KEY

SERVER = LocalServer("http://127.0.0.1:8000", "secret")


def test_a_server_is_announced_while_it_runs_for_its_user_alone(tmp_path: Path) -> None:
    with announced(SERVER, tmp_path):
        (file,) = tmp_path.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert local_server(tmp_path) == SERVER

    assert local_server(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("{")
    (tmp_path / "server.json.part").write_text("half")

    assert local_server(tmp_path) is None
    with announced(SERVER, tmp_path):
        assert local_server(tmp_path) == SERVER


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_file_that_others_can_read_or_write_is_not_believed(tmp_path: Path, mode: int) -> None:
    with announced(SERVER, tmp_path):
        (tmp_path / "server.json").chmod(mode)
        assert local_server(tmp_path) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with announced(SERVER, elsewhere):
        (tmp_path / "server.json").symlink_to(elsewhere / "server.json")
        assert local_server(tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(tmp_path: Path) -> None:
    with announced(SERVER, tmp_path):
        os.chown(tmp_path / "server.json", 12345, -1)
        assert local_server(tmp_path) is None


def test_what_a_killed_server_left_is_not_asked_for_anything(tmp_path: Path) -> None:
    """Its address may be a stranger's by then, who must get neither the key nor a document."""
    data_dir = installed(tmp_path / "data")
    settings = Settings(data_dir=data_dir, admin_key=ADMIN_KEY, _env_file=None)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(0.0)
        port = stranger.getsockname()[1]
        with announced(LocalServer(f"http://127.0.0.1:{port}", "secret"), data_dir):
            with connect(ServerTarget(url=None, key=None), settings=settings) as client:
                assert client.call("GET", "/v1/usage")["user_id"] == "local"
                assert local_server(data_dir) is None, "the one that took the lock has removed it"
            with pytest.raises(BlockingIOError):
                stranger.accept()


def test_an_application_in_this_process_leaves_its_logging_alone(tmp_path: Path) -> None:
    before = loggers_of_uvicorn()
    settings = Settings(data_dir=installed(tmp_path / "data"), _env_file=None)
    with connect(ServerTarget(url=None, key=None), settings=settings) as client:
        client.call("GET", "/v1/usage")
        assert loggers_of_uvicorn() == before


def loggers_of_uvicorn() -> dict[str, tuple[int, bool, list[logging.Handler]]]:
    """The level of each that a server without an access log writes to, whether it propagates, and its handlers."""
    loggers = {name: logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")}
    return {name: (one.level, one.propagate, [*one.handlers]) for name, one in loggers.items()}


def test_whoever_has_the_lock_knows_that_no_server_runs(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with data_dir_lock(tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "nowhere")
