"""ingestion.sandbox: a parser reaches no network, no other file and no other process."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ingestion.child_extractor import ChildExtractor
from ingestion.landlock import landlock_version
from ingestion.sandbox import try_sandbox

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is Linux's")
_ROOT = Path(__file__).parents[2]

CAPTURED = """
import json, os, sys
from pathlib import Path
from ingestion.sandbox import enter_sandbox
folder, port = Path(sys.argv[1]), int(sys.argv[2])
sandbox = enter_sandbox(work=folder / "work", shown=folder / "shown")
import socket, ctypes, subprocess
def tried(what):
    try:
        what()
    except (OSError, AttributeError) as error:
        return type(error).__name__
    return "done"
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
print(json.dumps({
    "entered": [sandbox.network_namespace, sandbox.calls, sandbox.files],
    "tcp": tried(lambda: socket.create_connection(("127.0.0.1", port), timeout=5)),
    "udp": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", port))),
    "local": tried(lambda: socket.socket(socket.AF_UNIX)),
    "shown": tried(lambda: (folder / "shown" / "document").read_text()),
    "changed": tried(lambda: (folder / "shown" / "document").write_text("other")),
    "written": tried(lambda: (folder / "work" / "file").write_text("text")),
    "secret": tried(lambda: (folder / "secret").read_text()),
    "list": tried(lambda: os.listdir(folder)),
    "server": tried(lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes()),
    "run": tried(lambda: subprocess.run(["/bin/true"])),
    "namespace": tried(lambda: call("unshare", 0x10000000)),
    "trace": tried(lambda: call("ptrace", 16, os.getppid(), 0, 0)),
    "signal": tried(lambda: os.kill(os.getppid(), 0)),
    "import": tried(lambda: __import__("ingestion.readers.pdf_boxes")),
}))
"""


@pytest.fixture
def captured(tmp_path: Path) -> dict[str, str]:
    """What a process in a sandbox managed to do, with a server that listens and a secret beside its folders."""
    for name in ("work", "shown"):
        (tmp_path / name).mkdir()
    (tmp_path / "shown" / "document").write_text("a document")
    (tmp_path / "secret").write_text("a secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = subprocess.run(
            [sys.executable, "-P", "-c", CAPTURED, str(tmp_path), str(server.getsockname()[1])],
            env={"PYTHONPATH": str(_ROOT)},
            capture_output=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_what_a_parser_may_do_it_can(captured: dict[str, str]) -> None:
    assert [captured[name] for name in ("shown", "written", "import")] == ["done"] * 3


@pytest.mark.parametrize("name", ["tcp", "udp", "local", "namespace", "trace"])
def test_it_has_no_sockets_and_no_hold_on_other_processes(captured: dict[str, str], name: str) -> None:
    assert captured["entered"][1], "the kernel refuses calls on every machine that CI has"
    assert captured[name] == "PermissionError"


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
@pytest.mark.parametrize("name", ["changed", "secret", "list", "server", "run"])
def test_it_opens_no_file_but_its_own(captured: dict[str, str], name: str) -> None:
    assert captured[name] == "PermissionError"


@pytest.mark.skipif(landlock_version() < 6, reason="this kernel's Landlock does not keep signals")
def test_it_signals_no_other_process(captured: dict[str, str]) -> None:
    assert captured["signal"] == "PermissionError"


def test_the_doctor_s_process_tries_the_walls() -> None:
    held = try_sandbox()

    assert held["no_network"]
    assert held["not_dumpable"]
    assert held["no_other_files"] == held["files"] == (landlock_version() > 0)


def test_a_parser_reads_a_document_from_another_disk_too(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    path = elsewhere / f"footnote-{os.getpid()}"
    try:
        path.write_text("words from another disk")
        with ChildExtractor() as extractor:
            assert extractor.extract(path, filename="a.txt").text == "words from another disk"
            assert extractor.extract(path, filename="a.txt").text == "words from another disk"
    finally:
        path.unlink(missing_ok=True)


def test_the_original_stays_when_a_parser_is_done(tmp_path: Path) -> None:
    path = tmp_path / "original"
    path.write_text("some words")

    with ChildExtractor() as extractor:
        extractor.extract(path, filename="a.txt")

    assert (path.read_text(), path.stat().st_nlink) == ("some words", 1)
