"""The disk fails while a server works: refusals are whole, nothing acknowledged is lost, no restart is needed."""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.disk.acts import ACTS, Client
from tests.faults.disk.application import logged
from tests.faults.disk.combinations import ERRORS, EVERYWHERE, PATTERNS, faults_of, one_by_one
from tests.faults.disk.faults import CHANGES, Calls, Fault
from tests.faults.disk.mounted import namespace
from tests.faults.disk.server import FailingServer, Refused
from tests.faults.preloaded.server import cannot_preload
from tests.processes import footnote

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(cannot_preload() is not None, reason=f"no disk fails: {cannot_preload()}"),
]

HERE = Path(__file__).parents[2]
CSV, REPORT = {"Accept": "text/csv"}, "/v1/admin/usage/completions?bucket_width=1d&start_time=1&end_time="


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for all faults. When all are over, it is killed and started, and everything acknowledged is there."""
    with (
        closing(FailingServer(tmp_path_factory.mktemp("failing"), logged)) as server,
        closing(Client(server)) as client,
    ):
        client.ask(Fault(Calls.WRITE, errno.EIO, "nothing"))
        yield client
        client.check()
        assert "quarantined" not in server.log(), "a torn index was saved"


def held(client: Client, act: str, fault: Fault) -> None:
    """Do an act while the disk fails; the fault must have come where the act makes such calls."""
    if fault.error == errno.EMFILE and Calls.READ in fault.calls:
        # The parser of this server counts its open files with the server's: what it reads meanwhile counts as damaged.
        client.server.settled()
    do, makes = ACTS[act]
    do(client, fault)
    if fault.calls & makes and fault.pattern == EVERYWHERE and fault.passes == 0:
        assert client.server.faults.failed > 0, f"nothing failed: {act}, {fault}"


@pytest.mark.parametrize("act", ACTS)
def test_a6_a_disk_that_says_it_is_full_loses_nothing_and_is_used_again(client: Client, act: str) -> None:
    for fault in faults_of(full=True):
        held(client, act, fault)


@pytest.mark.parametrize("act", ACTS)
def test_a9_a_disk_that_fails_loses_nothing_and_is_used_again(client: Client, act: str) -> None:
    for fault in faults_of(full=False):
        held(client, act, fault)


@pytest.mark.exhaustive
@pytest.mark.lasting
@pytest.mark.parametrize("failures", [1, None], ids=["once", "from then on"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("act", ACTS)
def test_a9_any_call_may_be_the_one_that_fails(client: Client, act: str, pattern: str, failures: int | None) -> None:
    for calls, error in ERRORS:
        # Without the calls that read, so that no document counts as damaged, see `held`.
        kinds = Calls.OPEN if error == errno.EMFILE else calls
        for fault in one_by_one(client, Fault(kinds, error, pattern), failures=failures):
            held(client, act, fault)
    client.settled()


def test_a9_what_was_deleted_is_gone_though_its_file_cannot_be_removed(client: Client) -> None:
    name = client.named()
    client.library.upload(name)
    client.server.settled()
    document = client.library.entries[name].document_id
    with client.server.faults.during(Fault(Calls.REMOVE, errno.EIO, "data/files/*")):
        client.library.delete(name)

    assert client.server.faults.failed > 0
    assert client.library.entries[name].markers == {""}, "acknowledged"
    assert document not in {one["id"] for one in client.server.documents()}


def test_a9_an_original_that_cannot_be_read_is_refused_and_readable_after(client: Client) -> None:
    name = client.named()
    client.library.upload(name)
    path = f"/v1/documents/{client.library.entries[name].document_id}/file"
    with (
        client.server.faults.during(Fault(Calls.READ, errno.EIO, "data/files/*")),
        pytest.raises(Refused) as refused,
    ):
        client.server.http.get(path)

    assert refused.value.status == 503
    assert client.server.http.get(path).status_code == 200


def test_a9_a_disk_that_becomes_read_only_refuses_changes_and_goes_on_reading(client: Client) -> None:
    server = client.server
    name = client.named()
    client.library.upload(name)
    client.settled()
    document = client.library.entries[name].document_id
    (marker,) = client.library.entries[name].markers
    report = f"{REPORT}{int(time.time())}"
    bill = server.http.get(report, headers=CSV).text
    with server.faults.during(Fault(CHANGES, errno.EROFS, EVERYWHERE)):
        before = contents(server)
        refused = [refusal(server, method, path, **how) for method, path, how in changes(document)]
        assert {status for status, _ in refused} == {503}
        assert all(retry_after for _, retry_after in refused)
        assert server.http.get(f"/v1/documents/{document}/content").text.startswith(marker)
        assert server.http.get(f"/v1/documents/{document}/file").text.startswith(marker)
        assert client.library.search(marker) == {name}
        assert server.http.get(report, headers=CSV).text == bill
        assert server.faults.failed > 0
        assert contents(server) == before, "something was written"

    client.ask(Fault(CHANGES, errno.EROFS, "nothing"))
    client.library.replace(name)
    server.settled()


@pytest.mark.skipif(namespace() is None, reason="no process may mount a disk here")
@pytest.mark.parametrize("command", ["migrate", pytest.param("serve", marks=pytest.mark.exhaustive)])
def test_a9_a_start_on_a_read_only_disk_is_refused_in_a_sentence(tmp_path: Path, command: str) -> None:
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    mounted = [*(namespace() or ()), "sh", "-c", mount, "sh", str(tmp_path), *footnote(command)]
    environment = {**os.environ, "FOOTNOTE_DATA_DIR": str(tmp_path)}
    done = subprocess.run(mounted, cwd=HERE, env=environment, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 1
    assert done.stderr.strip() == "footnote: The data dir cannot be written: Read-only file system."
    assert list(tmp_path.iterdir()) == []


def changes(document: str | None) -> list[tuple[str, str, dict[str, object]]]:
    """Requests that change something."""
    ask = {"question": "How many ships?", "max_output_tokens": 3, "on_no_evidence": "answer"}
    return [
        ("POST", "/v1/documents", {"files": {"file": ("read-only.txt", b"Forty ships were counted.")}}),
        ("PUT", f"/v1/documents/{document}", {"files": {"file": ("read-only.txt", b"Fifty ships.")}}),
        ("DELETE", f"/v1/documents/{document}", {}),
        ("POST", "/v1/ask", {"json": ask}),
        ("POST", "/v1/conversations", {"json": {}}),
    ]


def refusal(server: FailingServer, method: str, path: str, **how: object) -> tuple[int, str | None]:
    """The status and Retry-After of a request that is refused."""
    with pytest.raises(Refused) as refused:
        server.http.request(method, path, **how)  # type: ignore[arg-type]
    return refused.value.status, refused.value.retry_after


def contents(server: FailingServer) -> dict[Path, bytes]:
    """All files of the data dir, but for those that SQLite maps to memory."""
    files = (path for path in server.data_dir.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {path: path.read_bytes() for path in files}
