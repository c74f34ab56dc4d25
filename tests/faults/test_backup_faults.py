"""FAULTS.md A4, A5 and A12: what is deleted stays gone, what was acknowledged survives, what is restored is equal."""

import hashlib
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.documents.adapters.folder_originals import FolderOriginals
from app.documents.ports import new_object_name
from app.documents.spool import Spool
from app.ids import new_id
from app.server.bootstrap import build
from app.settings import Settings
from tests.backups import back_up, restore
from tests.faults.forked import ForkedServer, KillPoint
from tests.originals import held

pytestmark = pytest.mark.timeout(600)

WORDS = ("harbour", "lamp", "keeper", "ship", "tide", "pilot", "buoy", "ferry", "anchor", "fog")
QUERIES = [f"{first} {second}" for first in WORDS for second in WORDS]  # 100, the same ones always


def text_of(number: int) -> str:
    return "\n\n".join(
        f"Entry {part} of log {number}: the {WORDS[(number + part) % 10]} near the {WORDS[(number * part) % 10]} was "
        f"seen {number + part} times from the {WORDS[part % 10]}."
        for part in range(1, 8)
    )


def settings_of(data_dir: Path) -> Settings:
    return Settings(data_dir=data_dir, _env_file=None)


def rows(data_dir: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], ForkedServer]]:
    """Makes servers on data dirs of the given names."""
    servers = []

    def make(name: str) -> ForkedServer:
        servers.append(ForkedServer(tmp_path / name))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def answers(server: ForkedServer) -> list[list[dict[str, Any]]]:
    """Ids, offsets, texts and scores of what the fixed queries find."""
    found = []
    for query in QUERIES:
        response = server.http.post("/v1/search", json={"query": query, "top_k": 5})
        assert response.status_code == 200, response.text
        found.append(response.json()["data"])
    return found


def ledger(data_dir: Path) -> set[tuple[Any, ...]]:
    return set(rows(data_dir, "SELECT * FROM usage_event WHERE status <> 'reserved'"))


COMPARED = (
    *("document", "document_version", "chunk", "chunk_vector", "unattached_file"),
    *("api_request", "usage_event", "usage_event_document"),
)


def row_checksums(data_dir: Path) -> dict[str, list[str]]:
    """The SHA-256 of each row's content, by table, sorted."""
    return {
        name: sorted(hashlib.sha256(repr(row).encode()).hexdigest() for row in rows(data_dir, f"SELECT * FROM {name}"))
        for name in COMPARED
    }


def original_checksums(data_dir: Path) -> dict[str, str]:
    """The SHA-256 of each stored original, by its path below the store."""
    folder = data_dir / "files"
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a12_a_running_servers_backup_restores_to_equal_answers_and_equal_totals(serve, tmp_path):
    server = serve("data").start()
    uploaded = {number: server.upload(f"log-{number}.txt", text_of(number))["id"] for number in range(12)}
    assert {one["status"] for one in server.settled()} == {"indexed"}
    unattached = server.http.post(
        "/v1/files", files={"file": ("loose.txt", text_of(99).encode())}, data={"purpose": "assistants"}
    )
    server.http.post("/v1/ask", json={"question": "How many ships did the keeper count?"}).raise_for_status()
    before = answers(server)
    spent = ledger(server.data_dir)
    report = server.http.get("/v1/admin/usage/completions", params={"start_time": 0, "end_time": 4_000_000_000}).json()

    row_sums, original_sums = row_checksums(server.data_dir), original_checksums(server.data_dir)

    summary = back_up(settings_of(server.data_dir), tmp_path / "saved.tar.gz")  # the server holds the data dir
    restore(settings_of(tmp_path / "restored"), tmp_path / "saved.tar.gz")

    assert [name for name, sums in row_sums.items() if not sums] == [], "each table has rows to compare"
    assert row_checksums(tmp_path / "restored") == row_sums
    uploaded_texts = [*map(text_of, uploaded), text_of(99)]
    assert sorted(original_sums.values()) == sorted(hashlib.sha256(one.encode()).hexdigest() for one in uploaded_texts)
    assert original_checksums(tmp_path / "restored") == original_sums
    assert (summary.originals, summary.missing, summary.altered) == (13, (), ())
    assert ledger(tmp_path / "restored") == spent
    assert len(spent) >= 100 + 12, "each query and each document is on the bill"
    again = serve("restored").start()
    assert answers(again) == before
    assert sum(map(len, before)) >= 100
    shown = again.http.get("/v1/admin/usage/completions", params={"start_time": 0, "end_time": 4_000_000_000}).json()
    assert [bucket["results"] for bucket in shown["data"]] == [bucket["results"] for bucket in report["data"]]
    for number, document_id in uploaded.items():
        assert again.http.get(f"/v1/documents/{document_id}/file").content == text_of(number).encode()
    assert again.http.get(f"/v1/files/{unattached.json()['id']}/content").content == text_of(99).encode()
    assert again.http.post("/v1/admin/reconcile", json={}).json()["findings"] == []


def test_a12_a_backup_made_while_documents_come_and_go_is_one_consistent_moment(serve, tmp_path):
    server = serve("data").start()
    kept = {server.upload(f"log-{number}.txt", text_of(number))["id"] for number in range(4)}
    server.settled()
    stop, changes = threading.Event(), []

    def write() -> None:
        number = 100
        while not stop.is_set():
            made = server.upload(f"log-{number}.txt", text_of(number))["id"]
            if number % 2:
                server.http.delete(f"/v1/documents/{made}").raise_for_status()
            changes.append(made)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(changes) < 3:
            stop.wait(0.01)
        for number in range(3):
            back_up(settings_of(server.data_dir), tmp_path / f"{number}.tar.gz")
    finally:
        stop.set()
        writer.join()
    assert len(changes) > 3, "there were writes meanwhile"
    server.settled()

    summary = restore(settings_of(tmp_path / "restored"), tmp_path / "2.tar.gz").summary
    assert ledger(tmp_path / "restored") <= ledger(server.data_dir), "a moment of the past"
    again = serve("restored").start()
    found = {one["id"]: one["status"] for one in again.settled()}
    assert kept <= found.keys() <= kept | set(changes)
    deleted_meanwhile = {name.split("/")[0] for name in summary.missing}  # before its original's turn
    assert {document_id for document_id, status in found.items() if status != "indexed"} <= deleted_meanwhile
    assert not deleted_meanwhile & kept
    findings = again.http.post("/v1/admin/reconcile", json={"repair": False}).json()["findings"]
    assert [one for one in findings if one["code"] != "missing_originals"] == []


@pytest.mark.parametrize(
    "point",
    [
        KillPoint("app.db.documents:DocumentRepository.delete", "return"),
        KillPoint("app.documents.adapters.folder_originals:FolderOriginals.delete", "call"),
        KillPoint("app.documents.adapters.folder_originals:FolderOriginals.delete", "return"),
        KillPoint("app.db.originals:OriginalRepository.end", "return"),
    ],
    ids=str,
)
def test_a4_killed_during_a_delete_the_document_is_gone_with_all_that_was_its(serve, point):
    server = serve("data").start()
    gone, kept = (server.upload(f"log-{number}.txt", text_of(number))["id"] for number in range(2))
    server.settled()
    server.stop()
    server.start(kill_at=point)
    with pytest.raises(httpx.TransportError):
        server.http.delete(f"/v1/documents/{gone}")
    assert server.died(seconds=10)
    assert rows(server.data_dir, f"SELECT count(*) FROM document WHERE id = '{gone}'") == [(0,)]

    server.start()
    assert server.http.get(f"/v1/documents/{gone}").status_code == 404
    hits = [
        hit for query in QUERIES[:20] for hit in server.http.post("/v1/search", json={"query": query}).json()["data"]
    ]
    assert {hit["document_id"] for hit in hits} == {kept}
    named = rows(server.data_dir, f"SELECT object FROM document_version WHERE document_id = '{kept}'")
    assert [(path.name,) for path in (server.data_dir / "files").iterdir() if path.is_file()] == named
    assert rows(server.data_dir, "SELECT count(*) FROM upload") == [(0,)]
    assert server.http.post("/v1/admin/reconcile", json={}).json()["findings"] == []


def test_a4_killed_before_a_delete_is_committed_the_document_is_whole(serve):
    server = serve("data").start()
    document = server.upload("log.txt", text_of(1))["id"]
    server.settled()
    server.stop()
    server.start(kill_at=KillPoint("app.db.documents:DocumentRepository.delete", "call"))
    with pytest.raises(httpx.TransportError):
        server.http.delete(f"/v1/documents/{document}")
    assert server.died(seconds=10)

    server.start()
    assert [one["status"] for one in server.settled()] == ["indexed"]
    assert server.http.get(f"/v1/documents/{document}/file").content == text_of(1).encode()
    assert server.http.post("/v1/admin/reconcile", json={}).json()["findings"] == []


class DurableDisk:
    """What a disk holds after power loss: of each file and folder, what it held when it was last synced.

    POSIX promises no more (Pillai et al. 2014, "All File Systems Are Not Created Equal").
    """

    def __init__(self, root: Path) -> None:
        self._root = root.stat().st_ino
        self._entries: dict[int, dict[str, int]] = {self._root: {}}
        self._contents: dict[int, bytes] = {}

    def sync(self, descriptor: int) -> None:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            with os.scandir(descriptor) as entries:
                self._entries[about.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            self._contents[about.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def after_power_loss(self, *names: str) -> bytes | None:
        """The content of a file by its path; None when its name is lost, empty when its bytes are."""
        inode = self._root
        for name in names:
            found = self._entries.get(inode, {}).get(name)
            if found is None:
                return None
            inode = found
        return self._contents.get(inode, b"")


def upload(folder: Path, sync: Callable[[int], None], content: bytes) -> str:
    name, spool = new_object_name(), Spool(folder, sync=sync)
    received = spool.receive([content], name=new_id("in"), limit=1 << 20)
    FolderOriginals(folder, sync=sync).put(name, received)
    return name


@settings(max_examples=25, deadline=None)
@given(contents=st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=5))
def test_a5_every_acknowledged_original_survives_power_loss(tmp_path_factory, contents):
    root = tmp_path_factory.mktemp("disk")
    disk = DurableDisk(root)
    placed: dict[str, bytes] = {}

    for content in contents:
        placed[upload(root / "files", disk.sync, content)] = content
        for name, expected in placed.items():
            assert disk.after_power_loss("files", name) == expected


@pytest.mark.parametrize(("forgotten", "left"), [("files", b""), ("folders", None)])
def test_a5_the_disk_model_loses_data_when_an_fsync_is_left_out(tmp_path, forgotten, left):
    disk = DurableDisk(tmp_path)

    def forgetful(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) is not (forgotten == "folders"):
            disk.sync(descriptor)

    name = upload(tmp_path / "files", forgetful, b"bytes")

    assert disk.after_power_loss("files", name) == left


def test_a5_sqlite_waits_for_the_disk_at_every_commit(tmp_path):
    database = Database.open(f"sqlite:///{tmp_path / 'footnote.db'}")
    with database.write() as connection:
        held = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "journal_mode")]
    database.close()

    assert held == [2, "wal"], "2 is FULL"


def test_a5_a_torn_upload_is_gone_at_the_next_start(tmp_path):
    name = new_object_name()
    with build(settings_of(tmp_path), with_models=False) as state:
        OriginalRepository(state.database, OwnProcess.alone("boot_dead")).begin(name)
    (tmp_path / "files" / "incoming" / "in_1").write_bytes(b"half of")
    (tmp_path / "files" / name).write_bytes(b"")

    with build(settings_of(tmp_path), with_models=False) as state:
        assert held(state.corpus.files) == set()
        assert list((tmp_path / "files" / "incoming").iterdir()) == []
