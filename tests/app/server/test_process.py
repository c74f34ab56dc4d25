"""app.server.process sends systemd's notifications, and ignores a missing socket."""

import socket
from pathlib import Path

import pytest

from app.server.process import notify


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{path}" if abstract else path)
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{path}" if abstract else path)

        notify("READY=1")

        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "/no/such/socket", "not-a-path"])
def test_a_socket_without_a_listener_is_no_failure(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)

    notify("READY=1")
