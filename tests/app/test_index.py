"""app.index: whatever is on disk, the index in use mirrors SQL."""

import numpy as np
import pytest

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.index import LiveIndex
from tests.app.db.samples import EMBEDDER, Library
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]


@pytest.fixture
def library(sqlite_database: Database) -> Library:
    library = Library(sqlite_database)
    library.index("alpha", "beta", "gamma", filename="a.txt")
    library.index("delta", "epsilon", filename="b.txt")
    return library


def opened(library: Library, tmp_path) -> LiveIndex:
    chunks = ChunkRepository(library.database)
    return LiveIndex(tmp_path / "index", embedder=EMBEDDER, generation=library.generation, chunks=chunks)


def assert_mirrors(index: LiveIndex, library: Library) -> None:
    chunks = ChunkRepository(library.database)
    wanted = chunks.visible_keys()
    assert np.array_equal(index.current().keys(), wanted)
    keys, vectors = chunks.vectors(wanted.tolist(), generation=library.generation)
    for key, vector in zip(keys.tolist(), vectors, strict=True):
        (found, score), *_ = index.current().search(vector, k=1, allowed=np.array([key], dtype=np.int64))
        assert found == key
        assert score == pytest.approx(float(vector @ vector), abs=1e-5)


def test_without_a_saved_index_it_is_built_from_sql(library, tmp_path):
    assert_mirrors(opened(library, tmp_path), library)


def test_a_saved_index_is_loaded_and_need_not_be_saved_again(library, tmp_path):
    assert opened(library, tmp_path).save_if_changed()
    again = opened(library, tmp_path)

    assert not again.save_if_changed()
    assert_mirrors(again, library)


def test_what_changed_in_sql_since_the_save_is_mended(library, tmp_path):
    opened(library, tmp_path).save_if_changed()
    library.index("zeta", filename="c.txt")
    document = library.documents.list(tenant_id="t1", limit=10)[0][-1]
    library.documents.delete(document.id, tenant_id="t1")

    assert_mirrors(opened(library, tmp_path), library)


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "no manifest"])
def test_a_damaged_index_is_set_aside_and_rebuilt(library, tmp_path, damage):
    opened(library, tmp_path).save_if_changed()
    data = next(path for path in (tmp_path / "index").iterdir() if path.suffix != ".json")
    content = data.read_bytes()
    match damage:
        case "truncate":
            data.write_bytes(content[:-7])
        case "flip":
            data.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
        case "empty":
            data.write_bytes(b"")
        case "no manifest":
            next((tmp_path / "index").glob("*.json")).unlink()

    assert_mirrors(opened(library, tmp_path), library)
    assert len(list(tmp_path.glob("index.corrupt-*"))) == 1


def test_added_and_forgotten_vectors_are_in_and_out_at_once(library, tmp_path):
    index = opened(library, tmp_path)
    index.add(np.array([10_000], dtype=np.int64), np.ones((1, EMBEDDER.dim), dtype=np.float32))
    held: list[int] = index.current().keys().tolist()
    assert 10_000 in held

    index.forget(np.array([10_000], dtype=np.int64))
    assert_mirrors(index, library)
