"""The command line, as a person types it: on the local data dir and against a server."""

import os
import re
import signal
import stat
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.processes import footnote as command_line
from tests.processes import running
from tests.server import ADMIN_KEY, Server, require_default_models

NOTE = "The lighthouse keeper of Skagen counted 412 ships in May.\n\nHer dog is called Admiral.\n"


def footnote(*arguments: str, data_dir: Path, status: int = 0) -> str:
    result = subprocess.run(
        command_line(*arguments),
        env={**os.environ, "FOOTNOTE_DATA_DIR": str(data_dir), "FOOTNOTE_ADMIN_KEY": ADMIN_KEY, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        cwd=data_dir.parent,
        check=False,
    )
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout + result.stderr


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "papers"
    (folder / "deep").mkdir(parents=True)
    (folder / "note.txt").write_text(NOTE)
    (folder / "deep" / "copy.txt").write_text(NOTE)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / ".hidden").write_text("secret")
    return folder


def test_a_folder_is_ingested_and_asked_without_a_server(tmp_path, folder):
    require_default_models()
    data_dir = tmp_path / "data"
    report = footnote("ingest", str(folder), "--collection", "sea", data_dir=data_dir, status=2)

    assert "2 indexed, 0 unchanged, 1 failed" in report
    assert "broken.pdf" in report
    again = footnote("ingest", str(folder), "--collection", "sea", data_dir=data_dir, status=2)
    assert "0 indexed, 2 unchanged, 1 failed" in again
    answer = footnote("ask", "How many ships did the keeper of Skagen count in May?", data_dir=data_dir)
    assert re.search(r"\[1\] (note|copy)\.txt", answer), answer
    assert "“The lighthouse keeper of Skagen counted 412 ships in May.”" in answer
    assert re.search(r"[1-9][\d,]* tokens read \([1-9]\d* embedding, [1-9][\d,]* reading\)", answer), answer
    assert "local" in footnote("usage", "report", "--of", "embeddings", "--by", "user", data_dir=data_dir)
    assert "indexed" in footnote("documents", "--collection", "sea", data_dir=data_dir)
    assert "wrong" not in footnote("check", data_dir=data_dir)


def test_the_commands_work_beside_a_running_server_without_being_told_of_it(tmp_path, folder, server: Server):
    """They find its address, and a key that its user alone can read, in the data dir (docs/OPERATIONS.md)."""
    file = server.data_dir / "server.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    beside = partial(footnote, data_dir=server.data_dir)

    beside("ingest", str(folder / "note.txt"), "--collection", "beside")
    assert "note.txt" in beside("search", "lighthouse ships", "--collection", "beside")
    answer = beside("ask", "How many ships did the keeper of Skagen count?", "--collection", "beside")
    assert "412 ships" in answer
    key_id = beside("keys", "create", "beside", "--role", "reader").split()[0]
    assert key_id in beside("keys", "list")
    began = time.monotonic()
    report = beside("usage", "report", "--by", "user")
    took = time.monotonic() - began
    assert re.search(r"[1-9]\d* answers?; [1-9][\d,]* tokens read", report), report
    assert took < 10, "the models are not loaded a second time"


def test_the_same_commands_work_against_a_server(tmp_path, folder, server: Server):
    remote = ("--url", server.url, "--key", ADMIN_KEY)
    footnote(*remote, "ingest", str(folder / "note.txt"), "--collection", "remote sea", data_dir=tmp_path / "data")
    hits = footnote(*remote, "search", "lighthouse ships", "--collection", "remote sea", data_dir=tmp_path / "data")

    assert "note.txt" in hits
    made = footnote(*remote, "keys", "create", "visitor", "--role", "reader", data_dir=tmp_path / "data")
    key_id = made.split()[0]
    assert "visitor" in footnote(*remote, "keys", "list", data_dir=tmp_path / "data")
    footnote(*remote, "keys", "revoke", key_id, data_dir=tmp_path / "data")
    assert "revoked" in footnote(*remote, "keys", "list", data_dir=tmp_path / "data")
    assert not (tmp_path / "data").exists(), "a remote command leaves this machine alone"


def test_a_folder_is_followed_until_it_is_interrupted(tmp_path, folder, server: Server):
    collection = server.http.post("/v1/collections", json={"name": "followed"}).json()["id"]
    remote = ("--url", server.url, "--key", ADMIN_KEY)
    command = ("ingest", str(folder), "-c", collection, "--watch", "--prefix", "papers")

    def wait_for(wanted: set[str]) -> None:
        deadline = time.monotonic() + 120
        held: dict[str, str] = {}
        while time.monotonic() < deadline:
            page = server.http.get("/v1/documents", params={"collection_id": collection, "limit": 500}).json()
            held = {item["external_id"]: item["status"] for item in page["data"]}
            if held.keys() == wanted and set(held.values()) <= {"indexed", "failed"}:
                return
            time.sleep(0.2)
        raise AssertionError(held)

    arguments = command_line(*remote, *command)
    with running(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as following:
        wait_for({"papers/note.txt", "papers/deep/copy.txt", "papers/broken.pdf"})
        (folder / "broken.pdf").unlink()
        (folder / "new.md").write_text("# News\n\nThe lighthouse is lit again.\n")
        wait_for({"papers/note.txt", "papers/deep/copy.txt", "papers/new.md"})
        following.send_signal(signal.SIGINT)
        said = following.communicate(timeout=60)[0].decode()
    assert following.returncode == 0, said
    assert "removed papers/broken.pdf" in said
    # the newest may be interrupted between its indexing and the news of it
    assert re.search(r"[23] indexed, 0 unchanged, 1 removed, 0 failed", said)
    assert "Traceback" not in said


def test_failed_documents_are_tried_again_and_deleted(tmp_path, folder, server: Server):
    remote = ("--url", server.url, "--key", ADMIN_KEY)
    data_dir = tmp_path / "data"
    footnote(*remote, "ingest", str(folder), "-c", "to be deleted", "--prefix", "gone", data_dir=data_dir, status=2)

    retried = footnote(*remote, "documents", "-c", "to be deleted", "--retry", data_dir=data_dir, status=2)
    assert "0 indexed, 0 unchanged, 1 failed" in retried
    everything = ("--filter", '{"folder": "gone"}', "-c", "to be deleted")
    assert "nobody to ask" in footnote(*remote, "delete", *everything, data_dir=data_dir, status=1)
    assert "Deleted 3 documents" in footnote(*remote, "delete", *everything, "--yes", data_dir=data_dir)
    assert "no documents" in footnote(*remote, "documents", "-c", "to be deleted", data_dir=data_dir)


def test_failures_are_one_sentence(tmp_path, server: Server):
    data_dir = tmp_path / "data"
    assert "API key" in footnote("--url", server.url, "documents", data_dir=data_dir, status=1)
    assert "not valid" in footnote("--url", server.url, "--key", "fn_wrong", "documents", data_dir=data_dir, status=1)
    assert "no collection 'nowhere'" in footnote("documents", "-c", "nowhere", data_dir=data_dir, status=1)
    assert "Another Footnote process" in footnote("migrate", data_dir=server.data_dir, status=1)


def test_the_schema_is_brought_up_to_date(tmp_path):
    first = footnote("migrate", data_dir=tmp_path / "data")
    again = footnote("migrate", data_dir=tmp_path / "data")

    assert "empty → " in first
    assert re.search(r"Schema: (\S+) → \1", again)
