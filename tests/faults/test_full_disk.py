"""The disk is full at every kind of place: 507, reading and asking go on, and room is used again without a restart."""

import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.disk.acts import Client
from tests.faults.disk.application import logged
from tests.faults.disk.faults import Calls, Fault
from tests.faults.disk.mounted import SmallDisk, namespace
from tests.faults.disk.server import FailingServer, Refused
from tests.faults.preloaded.server import cannot_preload

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(cannot_preload() is not None, reason=f"no disk is full: {cannot_preload()}"),
]

MANY = os.urandom(3 << 19)  # 1.5 MiB: more than is kept in memory while it is received
WRITES = Calls.OPEN | Calls.WRITE | Calls.MAKE
ASK = {"question": "How many ships were counted?", "max_output_tokens": 3, "on_no_evidence": "answer"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for all places. When all are done, it is killed and started, and everything acknowledged is there."""
    server = FailingServer(tmp_path_factory.mktemp("full"), logged)
    try:
        client = Client(server)
        client.library.upload(client.named())
        client.ask(Fault(Calls.WRITE, errno.ENOSPC, "nothing"))
        server.settled()
        yield client
        client.check()
        assert "quarantined" not in server.log(), "a torn index was saved"
    finally:
        server.close()


def full(pattern: str, *, room: int = 0, passes: int = 0) -> Fault:
    """A full disk below a pattern."""
    return Fault(WRITES, errno.ENOSPC, pattern, room=room, passes=passes)


def eventually(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def sent(server: FailingServer) -> httpx.Response:
    """An upload of random bytes in a text file."""
    return server.http.post("/v1/documents", files={"file": ("many.txt", MANY.hex().encode())})


@pytest.mark.parametrize("place", ["tmp/*", "data/files/*", "data/footnote.db*"])
def test_a6_an_upload_without_room_is_refused_and_leaves_nothing(client: Client, place: str) -> None:
    server = client.server
    before = {one["id"] for one in server.documents()}
    with server.faults.during(full(place, room=0 if "db" in place else 2000)):
        with pytest.raises(Refused) as refused:
            sent(server)
        assert reads(client) == 1

    assert server.faults.failed > 0
    assert refused.value.status == 507
    assert {one["id"] for one in server.documents()} == before
    stored = [path for path in (server.data_dir / "files").rglob("*") if path.is_file()]
    assert [path for path in stored if path.stat().st_size > len(MANY) or path.parent.name == "incoming"] == []
    accepted = sent(server)
    assert accepted.status_code == 202
    assert server.http.delete(f"/v1/documents/{accepted.json()['id']}").status_code == 200


def reads(client: Client) -> int:
    """How many documents are found by a word of the first; their text and original are read too."""
    name = client.library.present()[0]
    (marker,) = client.library.entries[name].markers
    document = client.library.entries[name].document_id
    for what in ("content", "file"):
        response = client.server.http.get(f"/v1/documents/{document}/{what}")
        assert response.text.startswith(marker), response.text
    return len(client.library.search(marker))


def test_a6_where_the_index_has_no_room_documents_are_found_and_it_is_saved_later(client: Client) -> None:
    server, saved = client.server, client.server.data_dir / "index" / "manifest.json"
    before = saved.stat().st_mtime_ns if saved.exists() else 0
    name = client.named()
    with server.faults.during(full("data/index*", room=100)):
        client.library.upload(name)
        server.settled()
        eventually(lambda: server.faults.failed > 1)
        (marker,) = client.library.entries[name].markers
        assert client.library.search(marker) == {name}
        assert (saved.stat().st_mtime_ns if saved.exists() else 0) == before

    eventually(lambda: saved.exists() and saved.stat().st_mtime_ns > before)
    assert not list(saved.parent.glob("*.tmp"))


def test_a6_an_export_needs_no_room(client: Client) -> None:
    path = f"/v1/admin/usage/events?start_time=1&end_time={int(time.time()) + 1}"  # the end is exclusive
    before = client.server.http.get(path, headers={"Accept": "text/csv"})
    with client.server.faults.during(full("*")):
        during = client.server.http.get(path, headers={"Accept": "text/csv"})

    assert before.status_code == 200
    assert during.content == before.content
    assert len(before.text.splitlines()) > 1


def test_a6_a_full_log_stops_nothing_and_is_written_again(client: Client) -> None:
    server, log = client.server, client.server.root / "forked.log"
    size = log.stat().st_size
    with server.faults.during(full("forked.log")):
        assert status_of(server, "/v1/ask", ASK) == 200
        eventually(lambda: server.faults.failed > 0)
    client.settlement(full("@(forked.log|data/footnote.db*)"))

    assert server.faults.failed > 0
    eventually(lambda: b"settlement.replayed" in log.read_bytes()[size:])
    assert all(json.loads(line)["event"] for line in log.read_bytes()[size:].splitlines()), "each line is whole"


def test_a6_rows_of_ledger_and_conversation_are_there_whole_or_not_at_all(client: Client) -> None:
    server = client.server
    conversation = server.http.post("/v1/conversations", json={}).json()["id"]
    statuses = []
    for passes in range(0, 240, 6):
        with server.faults.during(full("data/footnote.db*", passes=passes)):
            statuses.append(status_of(server, "/v1/ask", {**ASK, "conversation_id": conversation}))

    kept = server.http.get(f"/v1/conversations/{conversation}").json()
    assert set(statuses) == {200, 507}, "some were answered, some refused"
    assert [turn["ordinal"] for turn in kept["data"]] == list(range(1, statuses.count(200) + 1))
    assert all(turn["answer"] for turn in kept["data"])


def test_a6_a_backup_without_room_leaves_the_earlier_one(client: Client) -> None:
    said = client.backup_command(full("*footnote.backup*", room=2000))

    assert client.server.faults.failed > 0
    assert said == "footnote: The disk has no room for this."


@pytest.mark.skipif(namespace() is None, reason="no process may mount a disk here")
def test_a6_a_small_disk_is_filled_and_emptied_while_a_server_works(tmp_path: Path) -> None:
    server = SmallDisk(tmp_path, logged, size=128 << 20)
    try:
        client = Client(server)
        name = client.named()
        client.library.upload(name)
        server.settled()
        server.fill(leave=32 << 20)
        for _ in range(10):
            assert server.http.post("/v1/ask", json=ASK).status_code == 200
        with pytest.raises(Refused) as refused:
            sent(server)
        assert refused.value.status == 507
        assert reads(client) == 1

        server.fill(leave=0)
        statuses = [status_of(server, "/v1/ask", ASK) for _ in range(30)]
        assert set(statuses) <= {200, 507}, statuses
        assert reads(client) == 1
        with pytest.raises(Refused) as refused:
            client.server.upload("small.txt", "Forty ships were counted.")
        assert refused.value.status == 507

        server.empty()
        again = client.named()
        client.library.upload(again)
        assert [one["status"] for one in server.settled()] == ["indexed", "indexed"]
        assert client.library.search(next(iter(client.library.entries[again].markers))) == {again}
        assert reads(client) == 1
        assert status_of(server, "/v1/ask", ASK) == 200
    finally:
        server.close()


def status_of(server: FailingServer, path: str, body: dict[str, object]) -> int:
    """The status of a POST, which may be refused."""
    try:
        return server.http.post(path, json=body).status_code
    except Refused as refused:
        return refused.status
