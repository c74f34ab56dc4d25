"""retrieval.index_file loads exactly what was saved, or refuses before FAISS sees it."""

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from retrieval import index_file
from retrieval.errors import IndexCorrupt
from retrieval.flat_index import FlatIndex
from retrieval.index_file import (
    DATA,
    MANIFEST,
    PartChecksums,
    load,
    manifest_of,
    quarantine,
    read_manifest,
    save,
    write_manifest,
)
from retrieval.inverted_index import InvertedIndex
from retrieval.key_set import KeySet
from retrieval.types import EmbedderInfo

EMBEDDER = EmbedderInfo(model="m", revision="r1", dim=8, max_tokens=16)


def an_index(*, seed: int = 0, rows: int = 5) -> FlatIndex:
    index = FlatIndex(8)
    index.add(np.arange(rows), np.random.default_rng(seed).standard_normal((rows, 8)).astype(np.float32))
    return index


def put(folder: Path, data: bytes, *, count: int = 0) -> None:
    """`data` in place of the index, with a manifest that vouches for it."""
    checksums = PartChecksums()
    checksums.update(data)
    (folder / DATA).write_bytes(data)
    manifest = manifest_of(checksums.hexdigests(), size=len(data), count=count, embedder=EMBEDDER, generation=3)
    write_manifest(folder, manifest)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    saved = tmp_path / "index"
    save(an_index(), saved, embedder=EMBEDDER, generation=3)
    return saved


def refusal(folder: Path) -> str:
    with pytest.raises(IndexCorrupt) as caught:
        load(folder, embedder=EMBEDDER, generation=3, exact=None)
    return str(caught.value)


def test_a_loaded_index_answers_as_the_saved_one(folder: Path) -> None:
    loaded = load(folder, embedder=EMBEDDER, generation=3, exact=None)

    query = np.ones(8, np.float32)
    assert loaded.search(query, k=5, allowed=None) == an_index().search(query, k=5, allowed=None)
    loaded.add(np.array([0, 9]), np.ones((2, 8), np.float32))
    assert loaded.remove(np.array([1])) == 1
    assert loaded.keys().tolist() == [0, 2, 3, 4, 9]


def test_an_empty_index_survives(tmp_path: Path) -> None:
    save(FlatIndex(8), tmp_path / "i", embedder=EMBEDDER, generation=1)

    assert len(load(tmp_path / "i", embedder=EMBEDDER, generation=1, exact=None)) == 0


def test_a_later_save_replaces_an_earlier_one_and_leaves_nothing_beside(folder: Path) -> None:
    save(an_index(rows=7), folder, embedder=EMBEDDER, generation=4)

    assert len(load(folder, embedder=EMBEDDER, generation=4, exact=None)) == 7
    assert sorted(path.name for path in folder.iterdir()) == [DATA, MANIFEST]


def test_no_saved_index_is_refused_in_words(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent") == "There is no saved index, or it has no manifest."


def test_data_without_manifest_is_refused(folder: Path) -> None:
    (folder / MANIFEST).unlink()

    assert "no manifest" in refusal(folder)


def test_a_manifest_without_data_is_refused(folder: Path) -> None:
    (folder / DATA).unlink()

    assert "missing" in refusal(folder)


@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_truncated_data_is_refused_by_its_size(folder: Path, kept: int) -> None:
    data = (folder / DATA).read_bytes()
    (folder / DATA).write_bytes(data[:kept])

    assert "bytes, its manifest says" in refusal(folder)


def test_data_with_something_appended_is_refused(folder: Path) -> None:
    with (folder / DATA).open("ab") as file:
        file.write(b"\0")

    assert "bytes, its manifest says" in refusal(folder)


def test_every_flipped_byte_of_the_data_is_caught_by_the_checksum(folder: Path) -> None:
    data = (folder / DATA).read_bytes()
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << (position % 8)
        (folder / DATA).write_bytes(flipped)
        assert "checksum" in refusal(folder), position


def test_every_flipped_byte_of_the_manifest_is_caught(folder: Path) -> None:
    manifest = (folder / MANIFEST).read_bytes()
    for position in range(len(manifest)):
        flipped = bytearray(manifest)
        flipped[position] ^= 1 << (position % 7)
        (folder / MANIFEST).write_bytes(flipped)
        refusal(folder)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"manifest": 1, "checksum": ""}', "[" * 100_000, "\xff"])
def test_a_manifest_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_bytes(text.encode("latin-1"))

    assert "damaged" in refusal(folder)


def test_data_that_is_no_index_is_refused_even_with_a_right_checksum(folder: Path) -> None:
    put(folder, b"IxM2" + bytes(60))

    assert "no FAISS index" in refusal(folder)


def test_another_kind_of_index_is_refused(folder: Path) -> None:
    put(folder, faiss.serialize_index(faiss.IndexFlatL2(8)).tobytes())

    assert "another kind" in refusal(folder)


def test_another_dimension_is_refused(folder: Path) -> None:
    put(folder, faiss.serialize_index(faiss.IndexIDMap2(faiss.IndexFlatIP(4))).tobytes())

    assert "4 dimensions, not 8" in refusal(folder)


def test_another_count_is_refused(folder: Path) -> None:
    put(folder, (folder / DATA).read_bytes(), count=4)

    assert refusal(folder) == "The saved index holds 5 vectors, its manifest says 4."


def test_the_manifest_says_what_is_saved(folder: Path, tmp_path: Path) -> None:
    manifest = read_manifest(folder)

    assert manifest is not None
    assert (manifest["count"], manifest["generation"], manifest["embedder"]["model"]) == (5, 3, "m")
    assert read_manifest(tmp_path / "absent") is None
    (folder / MANIFEST).write_bytes(b"{}")
    with pytest.raises(IndexCorrupt):
        read_manifest(folder)


@pytest.mark.parametrize("change", [{"model": "other"}, {"revision": "r2"}, {"dim": 4}, {"max_tokens": 512}])
def test_the_index_of_another_embedder_is_refused(folder: Path, change: dict[str, Any]) -> None:
    with pytest.raises(IndexCorrupt, match="another embedder"):
        load(folder, embedder=replace(EMBEDDER, **change), generation=3, exact=None)


def test_the_index_of_another_generation_is_refused(folder: Path) -> None:
    with pytest.raises(IndexCorrupt, match="another generation: 3, not 4"):
        load(folder, embedder=EMBEDDER, generation=4, exact=None)


def test_a_later_format_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())["manifest"]
    write_manifest(folder, {**manifest, "format": 3})

    assert "another format" in refusal(folder)


def test_the_manifest_of_another_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    save(an_index(seed=1), tmp_path / "other", embedder=EMBEDDER, generation=3)
    (tmp_path / "other" / MANIFEST).replace(folder / MANIFEST)

    assert "checksum" in refusal(folder)


def test_a_crash_between_data_and_manifest_is_refused(folder: Path, tmp_path: Path) -> None:
    save(an_index(seed=1), tmp_path / "later", embedder=EMBEDDER, generation=3)
    (tmp_path / "later" / DATA).replace(folder / DATA)

    assert "checksum" in refusal(folder)


def test_a_crash_while_writing_leaves_the_earlier_index(folder: Path) -> None:
    (folder / (DATA + ".tmp")).write_bytes(b"half")
    (folder / (MANIFEST + ".tmp")).write_bytes(b"half")

    assert len(load(folder, embedder=EMBEDDER, generation=3, exact=None)) == 5
    save(an_index(rows=6), folder, embedder=EMBEDDER, generation=3)
    assert sorted(path.name for path in folder.iterdir()) == [DATA, MANIFEST]


def test_a_full_disk_leaves_the_earlier_index_and_no_litter(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which refuses every byte")
    (folder / (DATA + ".tmp")).symlink_to("/dev/full")

    with pytest.raises(OSError) as caught:
        save(an_index(rows=6), folder, embedder=EMBEDDER, generation=3)

    assert caught.value.errno == errno.ENOSPC
    assert sorted(path.name for path in folder.iterdir()) == [DATA, MANIFEST]
    assert len(load(folder, embedder=EMBEDDER, generation=3, exact=None)) == 5


def test_quarantine_keeps_everything_under_a_dated_name(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    moved = quarantine(folder)

    assert moved is not None
    assert not folder.exists()
    assert moved.parent == folder.parent
    assert moved.name.startswith("index.corrupt-")
    assert moved.name.removeprefix("index.corrupt-").isdigit()
    assert {path.name: path.read_bytes() for path in moved.iterdir()} == before


def test_two_quarantines_in_one_second_keep_both(tmp_path: Path) -> None:
    moved = []
    for _ in range(3):
        (tmp_path / "index").mkdir()
        moved.append(quarantine(tmp_path / "index"))

    assert len(set(moved)) == 3
    assert all(path is not None and path.exists() for path in moved)


def test_nothing_to_quarantine_is_no_error(tmp_path: Path) -> None:
    assert quarantine(tmp_path / "absent") is None


def test_refusals_name_no_path(folder: Path) -> None:
    (folder / DATA).write_bytes(b"")

    assert str(folder) not in refusal(folder)
    assert index_file.DATA not in refusal(folder)


def an_inverted_index(*, rows: int = 500) -> InvertedIndex:
    vectors = np.random.default_rng(3).standard_normal((rows, 8)).astype(np.float32)
    index = InvertedIndex.train(vectors, lists=8, exact=None, threads=1)
    index.add(np.arange(rows), vectors)
    return index


def found(index: FlatIndex | InvertedIndex) -> list[list[tuple[int, float]]]:
    queries = np.random.default_rng(4).standard_normal((10, 8)).astype(np.float32)
    return [index.search(query, k=20, allowed=None) for query in queries]


def test_an_inverted_index_answers_from_its_file_as_it_did_in_memory(tmp_path: Path) -> None:
    save(an_inverted_index(), tmp_path / "i", embedder=EMBEDDER, generation=1)

    loaded = load(tmp_path / "i", embedder=EMBEDDER, generation=1, exact=None)

    assert isinstance(loaded, InvertedIndex)
    assert found(loaded) == found(an_inverted_index())
    assert loaded.keys().tolist() == list(range(500))


def test_writes_to_a_mapped_index_leave_its_file_as_it_is(tmp_path: Path) -> None:
    save(an_inverted_index(), tmp_path / "i", embedder=EMBEDDER, generation=1)
    before = (tmp_path / "i" / DATA).read_bytes()
    loaded = load(tmp_path / "i", embedder=EMBEDDER, generation=1, exact=None)

    loaded.add(np.array([3, 900]), np.ones((2, 8), np.float32))
    assert loaded.remove(np.array([5, 901])) == 1

    both = KeySet(np.array([3, 5, 900]))
    assert [key for key, _ in loaded.search(np.ones(8, np.float32), k=3, allowed=both)] == [3, 900]
    assert (tmp_path / "i" / DATA).read_bytes() == before
    save(loaded, tmp_path / "i", embedder=EMBEDDER, generation=2)
    again = load(tmp_path / "i", embedder=EMBEDDER, generation=2, exact=None)
    assert found(again) == found(loaded)
    assert again.keys().tolist() == sorted({*range(500), 900} - {5})


def test_a_mapped_index_outlives_its_replacement(tmp_path: Path) -> None:
    save(an_inverted_index(), tmp_path / "i", embedder=EMBEDDER, generation=1)
    loaded = load(tmp_path / "i", embedder=EMBEDDER, generation=1, exact=None)
    expected = found(loaded)

    save(an_inverted_index(rows=300), tmp_path / "i", embedder=EMBEDDER, generation=1)
    quarantine(tmp_path / "i")

    assert found(loaded) == expected


def test_an_index_that_was_never_trained_is_refused(folder: Path) -> None:
    raw = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(8), 8, 4, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    put(folder, faiss.serialize_index(raw).tobytes())

    assert "never trained" in refusal(folder)


def test_an_index_that_holds_a_key_twice_is_refused(folder: Path) -> None:
    raw, _ = an_inverted_index().copied(faiss.clone_index)
    raw.add_with_ids(np.ones((1, 8), np.float32), np.array([7]))
    put(folder, faiss.serialize_index(raw).tobytes(), count=501)

    assert "key twice" in refusal(folder)
