"""app.server.originals: where the settings have the originals, and what is said when they cannot be there."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from app.cli.main import cli
from app.documents.adapters.folder_originals import FolderOriginals
from app.errors import SetupError
from app.server.bootstrap import build
from app.server.originals import stored_originals
from app.server.state import State
from app.settings import Settings, load_settings
from tests.app.evaluation.application import application
from tests.bucket import KEYS, Bucket, bucket_keys, empty_bucket
from tests.faults.uploaded import client_of

__all__ = ["bucket_keys"]

pytestmark = pytest.mark.usefixtures("bucket_keys")

TEXT = "The keeper of the lighthouse counted forty ships.\n"


@pytest.fixture
def bucket() -> Bucket:
    return empty_bucket()


@pytest.fixture(params=["bucket", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], Any]]:
    """The settings of originals outside the data dir, and a function that reads all that is there."""
    if request.param == "bucket":
        bucket = empty_bucket()
        yield bucket.settings, bucket.held
    else:
        folder = tmp_path / "mounted"
        folder.mkdir()
        yield {"originals": str(folder)}, lambda: {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def state(place: tuple[dict[str, str], Any], tmp_path: Path) -> Iterator[State]:
    with application(tmp_path / "data", **place[0]) as state:
        yield state


def upload(client: TestClient, name: str, text: str) -> dict[str, Any]:
    sent = client.post("/v1/documents", files={"file": (name, text.encode())}, data={"wait": "30"})
    body: dict[str, Any] = sent.json()
    assert body["status"] == "indexed", body
    return body


def test_a_document_is_kept_there_read_from_there_and_deleted_there(
    state: State, place: tuple[dict[str, str], Any], tmp_path: Path
) -> None:
    _, held = place
    with client_of(state) as client:
        first = upload(client, "a.txt", TEXT)["id"]
        assert list(held().values()) == [TEXT.encode()]
        assert [path for path in (tmp_path / "data" / "files").rglob("in_*") if path.is_file()] == []

        whole = client.get(f"/v1/documents/{first}/file")
        part = client.get(f"/v1/documents/{first}/file", headers={"Range": "bytes=4-9"})
        again = client.get(
            f"/v1/documents/{first}/file", headers={"If-Range": whole.headers["etag"], "Range": "bytes=0-2"}
        )
        replaced = client.put(
            f"/v1/documents/{first}",
            files={"file": ("a.txt", TEXT.replace("forty", "fifty").encode())},
            data={"on_duplicate": "replace", "wait": "30"},
        )
        now = client.get(f"/v1/documents/{first}/file").text
        left = list(held().values())
        client.delete(f"/v1/documents/{first}").raise_for_status()

    assert (whole.text, part.text, part.status_code) == (TEXT, TEXT[4:10], 206)
    assert (again.status_code, again.text) == (206, "The"), (
        "a copy that was fetched again is the same file to a browser"
    )
    assert replaced.json()["status"] == "indexed"
    assert now == TEXT.replace("forty", "fifty")
    assert left == [now.encode()]
    assert held() == {}
    assert [path for path in (tmp_path / "data" / "files").rglob("*") if path.is_file()] == [], "and no copy is left"


def test_the_comparison_with_the_rows_deletes_nothing_that_it_does_not_know(
    state: State, place: tuple[dict[str, str], Any]
) -> None:
    _, held = place
    with client_of(state) as client:
        upload(client, "a.txt", TEXT)
    store = stored_originals(state.settings)
    of_others = "obj_01jd2x8k3vq5zt7m9n4r6s8w0y"
    store.put(of_others, state.corpus.files.spool.receive([b"of another database"], name="in_1", limit=99))

    found = state.corpus.reconciler.run(None, repair=True)

    assert found.open == ()
    assert sorted(held().values()) == sorted([TEXT.encode(), b"of another database"])


def test_a_backup_is_made_from_there_and_restored_to_there_and_to_a_folder(
    place: tuple[dict[str, str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, held = place
    monkeypatch.chdir(tmp_path)
    with application(tmp_path / "data", **settings) as state, client_of(state) as client:
        document = upload(client, "a.txt", TEXT)["id"]
        lost = upload(client, "b.txt", TEXT * 2)["id"]
    before = held()
    names = {f"FOOTNOTE_{name.upper()}": value for name, value in settings.items()}
    command(tmp_path / "data", names, "backup", "saved.tar.gz")
    with application(tmp_path / "data", **settings) as state, client_of(state) as client:
        client.delete(f"/v1/documents/{lost}").raise_for_status()
    assert len(held()) == 1

    command(tmp_path / "data", names, "restore", "saved.tar.gz", "--force")
    command(tmp_path / "new", {}, "restore", "saved.tar.gz")

    assert held() == before
    for folder, values in ((tmp_path / "data", settings), (tmp_path / "new", {})):
        with application(folder, **values) as state, client_of(state) as client:
            assert client.get(f"/v1/documents/{document}/file").text == TEXT
            assert client.get(f"/v1/documents/{lost}/file").text == TEXT * 2


def test_what_a_failed_restore_put_there_is_deleted_and_what_was_there_stays(
    place: tuple[dict[str, str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, held = place
    monkeypatch.chdir(tmp_path)
    with application(tmp_path / "data", **settings) as state, client_of(state) as client:
        upload(client, "a.txt", TEXT)
        gone = upload(client, "b.txt", TEXT * 2)["id"]
    names = {f"FOOTNOTE_{name.upper()}": value for name, value in settings.items()}
    command(tmp_path / "data", names, "backup", "saved.tar.gz")
    with application(tmp_path / "data", **settings) as state, client_of(state) as client:
        client.delete(f"/v1/documents/{gone}").raise_for_status()
    before = held()

    def fails(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("app.db.portable.RowLoader.finish", fails)
        failed = invoke(tmp_path / "data", names, "restore", "saved.tar.gz", "--force")

    assert failed.exit_code != 0
    assert held() == before


def invoke(data_dir: Path, names: dict[str, str], *arguments: str) -> Any:
    environment = {"FOOTNOTE_DATA_DIR": str(data_dir), "COLUMNS": "400", **names}
    return CliRunner().invoke(cli, list(arguments), env=environment)


def command(data_dir: Path, names: dict[str, str], *arguments: str) -> None:
    result = invoke(data_dir, names, *arguments)
    assert result.exit_code == 0, result.output or result.exception


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"originals": "/no/such/folder"}, "names no folder.*mounted"),
        ({"originals": "s3://no-such-bucket"}, "The bucket of the originals does not exist.*AWS_ACCESS_KEY_ID"),
        (
            {"originals": "s3://some", "originals_endpoint": "http://127.0.0.1:9"},
            "does not answer.*FOOTNOTE_ORIGINALS_ENDP",
        ),
    ],
)
def test_a_start_without_its_originals_is_refused_with_what_to_look_at(
    bucket: Bucket, tmp_path: Path, values: dict[str, str], sentence: str
) -> None:
    everywhere = {**bucket.settings, **values} if values["originals"].startswith("s3:") else values
    settings = Settings(data_dir=tmp_path / "data", _env_file=None, **everywhere)  # type: ignore[arg-type]

    with pytest.raises(SetupError, match=sentence) as refused, build(settings, with_models=False):
        pass

    assert not any(key in str(refused.value) for key in KEYS.values())


def test_a_bucket_without_the_extra_is_refused_with_the_extras_name(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.startswith("obstore") or name.endswith("object_originals")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "obstore", None)
    settings = Settings(data_dir=tmp_path, _env_file=None, **bucket.settings)  # type: ignore[arg-type]

    with pytest.raises(SetupError, match=r"extra `s3`: pip install 'footnote-rag\[s3\]'"):
        stored_originals(settings)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"originals": "gs://bucket"}, "FOOTNOTE_ORIGINALS"),
        ({"originals": "files"}, "FOOTNOTE_ORIGINALS"),
        ({"originals": "s3://hidden:hidden@bucket"}, "FOOTNOTE_ORIGINALS"),
        ({"originals": "s3://bucket/../other"}, "FOOTNOTE_ORIGINALS"),
        (
            {"originals": "s3://bucket", "originals_endpoint": "http://hidden:hidden@host"},
            "FOOTNOTE_ORIGINALS_ENDPOINT",
        ),
        ({"originals_endpoint": "http://host:9000"}, "need FOOTNOTE_ORIGINALS=s3://"),
        ({"originals": "/mnt", "originals_region": "eu-central-1"}, "need FOOTNOTE_ORIGINALS=s3://"),
    ],
)
def test_settings_that_name_no_place_are_refused_and_not_repeated(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(SetupError, match=sentence) as refused:
        load_settings(**values)

    assert "hidden" not in str(refused.value)


def test_the_doctor_tries_the_store_and_leaves_nothing_in_it(
    place: tuple[dict[str, str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, held = place
    monkeypatch.chdir(tmp_path)
    names = {f"FOOTNOTE_{name.upper()}": value for name, value in settings.items()}

    result = invoke(tmp_path / "data", names, "doctor", "--json")

    report = json.loads(result.output)
    assert report["originals"]["place"] == ("bucket" if "originals_endpoint" in settings else "folder")
    assert report["originals"]["tried_in_ms"] >= 0
    assert "originals-unusable" not in {finding["code"] for finding in report["findings"]}
    assert not any(key in result.output for key in KEYS.values())
    assert held() == {}


def test_the_doctor_says_that_the_rows_speak_of_another_store(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with application(tmp_path / "data") as state, client_of(state) as client:
        upload(client, "a.txt", TEXT)
    names = {f"FOOTNOTE_{name.upper()}": value for name, value in bucket.settings.items()}

    told, sound = (json.loads(invoke(tmp_path / "data", those, "doctor", "--json").output) for those in (names, {}))

    assert "originals-missing" in {finding["code"] for finding in told["findings"]}
    assert told["database"]["newest_originals"] == {"sought": 1, "missing": 1}
    assert "originals-missing" not in {finding["code"] for finding in sound["findings"]}


def test_the_doctor_says_that_a_bucket_cannot_be_used(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    httpx.delete(f"{bucket.endpoint}/{bucket.name}", trust_env=False, timeout=60).raise_for_status()
    names = {f"FOOTNOTE_{name.upper()}": value for name, value in bucket.settings.items()}

    result = invoke(tmp_path / "data", names, "doctor", "--json")

    assert result.exit_code == 1
    (finding,) = (one for one in json.loads(result.output)["findings"] if one["code"] == "originals-unusable")
    assert "does not exist" in finding["sentence"]
    assert not any(key in result.output for key in KEYS.values())


ALONE = """
import sys
from pathlib import Path
from app.server.bootstrap import build
from app.settings import Settings
with build(Settings(data_dir=Path(sys.argv[1]), _env_file=None), with_models=False) as state:
    print([name for name in sys.modules if name.endswith(("obstore", "object_originals", "local_copies"))])
"""


def test_a_process_with_its_own_folder_imports_nothing_of_buckets(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ALONE, tmp_path], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


def test_the_default_is_the_folder_of_the_data_dir(tmp_path: Path) -> None:
    assert isinstance(stored_originals(Settings(data_dir=tmp_path, _env_file=None)), FolderOriginals)
