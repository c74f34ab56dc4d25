"""app.documents.adapters.object_originals: what only a bucket does."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.documents.adapters.local_copies import LocalCopies
from app.documents.adapters.object_originals import ObjectOriginals, bucket
from app.documents.ports import new_object_name
from app.documents.spool import Spool, Spooled
from app.errors import StoreUnavailable
from tests.bucket import KEYS, bucket_keys, empty_bucket

__all__ = ["bucket_keys"]

MiB = 1 << 20


pytestmark = pytest.mark.usefixtures("bucket_keys")


def spooled(folder: Path, content: bytes = b"abc") -> Spooled:
    return Spool(folder).receive([content], name="in_1", limit=len(content))


def copies(folder: Path) -> LocalCopies:
    return LocalCopies(folder, most_bytes=0)


def originals(tmp_path: Path, endpoint: str, name: str = "some") -> ObjectOriginals:
    return ObjectOriginals(bucket(name, endpoint=endpoint, region="us-east-1"), copies=copies(tmp_path))


@contextmanager
def refusing() -> Iterator[str]:
    """The address of a server that refuses every request, as S3 does without the right keys."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def refuse(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = refuse  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def every_use(store: ObjectOriginals, file: Spooled) -> Iterator[str]:
    """What each use of a store says when it fails."""
    name = new_object_name()
    uses = (
        lambda: store.put(name, file),
        lambda: store.delete(name),
        lambda: store.open(name).__enter__(),
        lambda: store.open(name, start=1).__enter__(),
        lambda: store.local_copy(name).__enter__(),
    )
    for use in uses:
        with pytest.raises(StoreUnavailable) as caught:
            use()
        yield str(caught.value)


@pytest.mark.parametrize("content", [b"abc", b"a" * (9 * MiB)], ids=len)
def test_a_bucket_without_the_right_keys_says_so_and_nothing_of_what_it_was_sent(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with refusing() as endpoint:
        said = set(every_use(originals(tmp_path, endpoint), spooled(tmp_path, content)))

    assert said == {"The bucket of the originals refuses this server's keys."}
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in caplog.text


def test_a_server_that_does_not_answer_is_told_apart_from_a_missing_original(tmp_path: Path) -> None:
    said = set(every_use(originals(tmp_path, "http://127.0.0.1:9"), spooled(tmp_path)))

    assert said == {"The store of the originals does not answer; try again in a moment."}


@pytest.mark.parametrize("content", [b"abc", b"a" * (9 * MiB)], ids=len)
def test_a_bucket_that_is_gone_takes_nothing_and_forgets_nothing(tmp_path: Path, content: bytes) -> None:
    store = originals(tmp_path, empty_bucket().endpoint, "no-such-bucket")
    name = new_object_name()

    for use in (
        lambda: store.put(name, spooled(tmp_path, content)),
        lambda: store.delete(name),
        lambda: store.open(name).__enter__(),
        lambda: store.local_copy(name).__enter__(),
    ):
        with pytest.raises(StoreUnavailable, match="does not exist"):
            use()


def test_two_prefixes_of_a_bucket_are_two_stores(tmp_path: Path) -> None:
    place = empty_bucket()
    first, second = (
        ObjectOriginals(
            bucket(place.name, prefix=prefix, endpoint=place.endpoint, region="us-east-1"), copies=copies(tmp_path)
        )
        for prefix in ("first", "second/deep")
    )
    first.put(name := new_object_name(), spooled(tmp_path))
    second.delete(name)

    assert first.size(name) == 3
    assert second.size(name) is None


def test_a_thousand_originals_are_deleted_at_once(tmp_path: Path) -> None:
    store = ObjectOriginals(empty_bucket().store(), copies=copies(tmp_path))
    names = [new_object_name() for _ in range(1001)]
    for name in (names[0], names[-1]):
        store.put(name, spooled(tmp_path))

    store.delete(*names)

    assert store.size(names[0]) is store.size(names[-1]) is None


def test_a_local_copy_goes_when_it_has_been_read(tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    store = ObjectOriginals(empty_bucket().store(), copies=copies(folder))
    store.put(name := new_object_name(), spooled(tmp_path))

    with store.local_copy(name) as path:
        assert [path] == list(folder.iterdir())
    assert list(folder.iterdir()) == []


LARGE = """
import sys
from pathlib import Path
from app.documents.adapters.local_copies import LocalCopies
from app.documents.adapters.object_originals import ObjectOriginals, bucket
from app.documents.ports import new_object_name
from app.documents.spool import Spool

MiB = 1 << 20
endpoint, name, folder, size = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]) * MiB
spool = Spool(folder)
store = ObjectOriginals(bucket(name, endpoint=endpoint, region="us-east-1"), copies=LocalCopies(folder, most_bytes=0))

def in_memory(what):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if what in line)

def through(size):
    received = spool.receive((bytes(MiB) for _ in range(size // MiB)), name="in", limit=size)
    store.put(original := new_object_name(), received)
    with store.open(original) as blocks:
        assert sum(map(len, blocks)) == size
    with store.local_copy(original) as path:
        assert path.stat().st_size == size

through(MiB)
before = in_memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
through(size)
print((in_memory("VmHWM") - before) >> 10)
"""


def test_a_large_original_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    place = empty_bucket()
    command = [sys.executable, "-c", LARGE, place.endpoint, place.name, str(tmp_path), "160"]

    taken = subprocess.run(command, capture_output=True, text=True, check=False)

    assert taken.returncode == 0, taken.stderr
    assert int(taken.stdout) < 64, "MiB more at its peak, for a file of 160"
