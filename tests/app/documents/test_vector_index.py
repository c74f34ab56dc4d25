"""app.documents.adapters.faiss_vectors: whatever is on disk, the index in use mirrors SQL."""

import threading

import faiss
import numpy as np
import pytest

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.documents.adapters.faiss_vectors import FaissVectors, transfer_to
from retrieval.errors import IndexDeviceUnavailable
from retrieval.index_file import IndexPlan
from retrieval.key_set import KeySet
from tests.app.db.samples import EMBEDDER, Library
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.fake_gpu import FakeGpu

__all__ = ["migrated_file", "sqlite_database"]


@pytest.fixture
def library(sqlite_database: Database) -> Library:
    library = Library(sqlite_database)
    library.index("alpha", "beta", "gamma", filename="a.txt")
    library.index("delta", "epsilon", filename="b.txt")
    return library


def opened(library: Library, tmp_path) -> FaissVectors:
    chunks = ChunkRepository(library.database)
    return FaissVectors(tmp_path / "index", embedder=EMBEDDER, generation=library.generation, chunks=chunks)


def assert_mirrors(index: FaissVectors, library: Library) -> None:
    chunks = ChunkRepository(library.database)
    wanted = chunks.visible_keys()
    assert np.array_equal(index.current().keys(), wanted)
    keys, vectors = chunks.vectors(wanted.tolist(), generation=library.generation)
    for key, vector in zip(keys.tolist(), vectors, strict=True):
        (found, score), *_ = index.current().search(vector, k=1, allowed=KeySet(np.array([key])))
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


SMALL = IndexPlan(inverted_from=12, flat_below=6)


class PausingChunks(ChunkRepository):
    """Stops a reader of all vectors until `gate` opens, so that a test can write meanwhile."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.gate = threading.Event()
        self.gate.set()
        self.reading = threading.Event()

    def iter_vectors(self, **options):
        self.reading.set()
        assert self.gate.wait(timeout=20)
        yield from super().iter_vectors(**options)


def planned(
    library: Library, tmp_path, chunks: ChunkRepository | None = None, gpu: FakeGpu | None = None
) -> FaissVectors:
    return FaissVectors(
        tmp_path / "index",
        embedder=EMBEDDER,
        generation=library.generation,
        chunks=chunks or ChunkRepository(library.database),
        plan=SMALL,
        transfer=gpu.transfer if gpu is not None else None,
    )


def put(library: Library, index: FaissVectors, *texts: str) -> str:
    """Index a document as the worker does; its id."""
    library.upload("content of " + " ".join(texts))
    result = library.commit(library.claim(), list(texts))
    keys, vectors = ChunkRepository(library.database).vectors(result.new_keys.tolist(), generation=library.generation)
    index.add(keys, vectors)
    return library.documents.list(tenant_id="t1", limit=1)[0][0].id


def drop(library: Library, index: FaissVectors, document_id: str) -> None:
    index.forget(library.documents.delete(document_id, tenant_id="t1").keys)


def test_a_collection_that_outgrows_its_index_gets_another_and_back(library, tmp_path):
    index = planned(library, tmp_path)
    assert index.lists == 0

    document_id = put(library, index, *(f"passage {number}" for number in range(10)))
    index.settle()
    assert index.lists > 0
    assert_mirrors(index, library)

    drop(library, index, document_id)
    index.settle()
    assert index.lists == 0
    assert_mirrors(index, library)


def test_a_large_collection_is_built_in_lists_at_once_and_loaded_as_such(library, tmp_path):
    library.index(*(f"passage {number}" for number in range(20)))
    index = planned(library, tmp_path)
    lists = index.lists
    assert lists > 0
    index.close()

    again = planned(library, tmp_path)

    assert again.lists == lists
    assert not again.save_if_changed()
    assert_mirrors(again, library)


def test_what_is_written_during_a_training_is_found_at_once_and_not_lost(library, tmp_path):
    chunks = PausingChunks(library.database)
    index = planned(library, tmp_path, chunks)
    chunks.gate.clear()
    chunks.reading.clear()
    put(library, index, *(f"passage {number}" for number in range(10)))
    assert chunks.reading.wait(timeout=20)  # the training has begun: SQL was asked for the keys to read

    gone = library.documents.list(tenant_id="t1", limit=10)[0][-1].id
    drop(library, index, gone)
    for number in range(3):
        put(library, index, f"late {number}", f"later {number}")
    assert index.lists == 0
    assert_mirrors(index, library)
    assert index.save_if_changed()
    chunks.gate.set()
    index.settle()

    assert index.lists > 0
    assert_mirrors(index, library)
    assert index.save_if_changed()


def test_searches_and_saves_go_on_while_documents_come_and_go_and_the_index_is_retrained(library, tmp_path):
    index = planned(library, tmp_path)
    steady = ChunkRepository(library.database).visible_keys()
    query = np.ones(EMBEDDER.dim, np.float32)
    done, failures, searches = threading.Event(), [], [0]

    def search() -> None:
        while not done.is_set():
            found = index.current().search(query, k=len(steady), allowed=KeySet(steady))
            searches[0] += 1
            if sorted(key for key, _ in found) != steady.tolist():
                failures.append(found)

    def save() -> None:
        while not done.is_set():
            index.save_if_changed()

    threads = [threading.Thread(target=search), threading.Thread(target=search), threading.Thread(target=save)]
    for thread in threads:
        thread.start()
    for turn in range(3):
        document_id = put(library, index, *(f"passage {turn} {number}" for number in range(12)))
        index.settle()
        drop(library, index, document_id)
        index.settle()
    done.set()
    for thread in threads:
        thread.join()

    assert searches[0]
    assert not failures
    assert_mirrors(index, library)
    index.close()
    assert_mirrors(planned(library, tmp_path), library)


def test_a_training_that_fails_leaves_the_index_in_use(library, tmp_path):
    class Failing(PausingChunks):
        def visible_keys(self):
            if threading.current_thread().name == "footnote-index":
                raise OSError("the disk is gone")
            return super().visible_keys()

    index = planned(library, tmp_path, Failing(library.database))
    put(library, index, *(f"passage {number}" for number in range(10)))
    index.settle()
    put(library, index, "one more")
    index.settle()

    assert index.lists == 0
    assert_mirrors(index, library)


def test_closing_during_a_training_gives_it_up_and_saves(library, tmp_path):
    chunks = PausingChunks(library.database)
    index = planned(library, tmp_path, chunks)
    chunks.gate.clear()
    chunks.reading.clear()
    put(library, index, *(f"passage {number}" for number in range(10)))
    assert chunks.reading.wait(timeout=20)
    closing = threading.Thread(target=index.close)
    closing.start()
    while not index.closing:
        closing.join(timeout=0.01)
    chunks.gate.set()
    closing.join()

    assert index.lists == 0
    assert (tmp_path / "index" / "manifest.json").exists()


def test_on_a_device_it_mirrors_sql_through_growth_and_shrinking_and_is_saved_from_memory(library, tmp_path):
    gpu = FakeGpu()
    index = planned(library, tmp_path, gpu=gpu)
    query = np.ones(EMBEDDER.dim, np.float32)
    assert len(index.current().search(query, k=2, allowed=None)) == 2
    assert gpu.searches

    document_id = put(library, index, *(f"passage {number}" for number in range(10)))
    index.settle()
    assert index.lists > 0
    assert len(gpu.copies) == 2
    assert_mirrors(index, library)
    gone = index.current()
    drop(library, index, document_id)
    index.settle()
    assert index.lists == 0
    assert_mirrors(index, library)
    assert gone is not index.current()
    index.close()

    again = planned(library, tmp_path)  # without the device
    assert not again.save_if_changed()
    assert_mirrors(again, library)


def test_a_device_that_fails_leaves_the_index_in_memory_to_answer(library, tmp_path):
    gpu = FakeGpu()
    gpu.full = True
    index = planned(library, tmp_path, gpu=gpu)
    put(library, index, *(f"passage {number}" for number in range(10)))
    index.settle()

    assert index.lists > 0
    assert not gpu.copies
    assert_mirrors(index, library)


@pytest.mark.skipif(faiss.get_num_gpus() > 0, reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused_before_anything_is_opened():
    assert transfer_to("cpu") is None
    with pytest.raises(IndexDeviceUnavailable, match="FOOTNOTE_INDEX_DEVICE"):
        transfer_to("cuda")
