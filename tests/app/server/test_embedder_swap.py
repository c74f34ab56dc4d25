"""app.server.embedder_swap: the embedder changes and rolls back while searches and uploads go on."""

import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.tables.documents import chunk_vector
from app.db.tables.ledger import usage_event
from app.documents.adapters.faiss_vectors import FaissVectors, index_folder
from app.server.state import State
from tests.app.server.embedder_swaps import BLOCK, GatedEmbedder, Served, served, wait_until

TEXTS = [f"The keeper of tower{number} counted ships{number} in winter{number}." for number in range(2 * BLOCK + 1)]
LATE = "A lighthouse stood at the harbour."


@pytest.fixture
def old() -> GatedEmbedder:
    return GatedEmbedder(dim=64)


@pytest.fixture
def new() -> GatedEmbedder:
    return GatedEmbedder(dim=96)


@pytest.fixture
def data_dir(tmp_path: Path, old: GatedEmbedder) -> Path:
    """A data dir that the old embedder filled with `TEXTS`."""
    with served(tmp_path / "data", old) as application:
        application.upload(*TEXTS)
    old.documents.clear()
    return tmp_path / "data"


def vectors(state: State) -> Counter[int]:
    """How many vectors there are by generation."""
    with state.database.read() as connection:
        counted = sa.select(chunk_vector.c.generation, sa.func.count()).group_by(chunk_vector.c.generation)
        return Counter({row[0]: row[1] for row in connection.execute(counted)})


def assert_mirrors(application: Served) -> None:
    """The index in use holds the visible chunks, with the vectors that SQL has in its generation."""
    index, chunks = application.serving.current().index, ChunkRepository(application.state.database)
    wanted = chunks.visible_keys()
    assert isinstance(index, FaissVectors)
    assert index.current().keys().tolist() == wanted.tolist()
    assert chunks.vectors(wanted.tolist(), generation=index.generation)[0].tolist() == wanted.tolist()


def close_during_a_block(application: Served, embedder: GatedEmbedder) -> None:
    """Close the swap while it waits for `embedder` to embed a block; another block is not begun."""
    closing = threading.Thread(target=application.embedder_swap.close)
    closing.start()
    wait_until(lambda: application.embedder_swap.closing)
    embedder.gate.set()
    closing.join()


def test_the_old_embedder_serves_until_the_new_one_has_everything(data_dir, old, new):
    new.gate.clear()
    with served(data_dir, new, old) as application:
        assert new.reading.wait(timeout=20)
        readiness = application.http.get("/readyz").json()
        assert (readiness["ready"], readiness["checks"]["reembedding"]["total"]) == (True, len(TEXTS))
        (late,) = application.upload(LATE)
        gone = application.found(TEXTS[0])[0]
        application.http.delete(f"/v1/documents/{gone}")
        assert application.found(LATE) == [late]
        assert application.generations() == {1: "active", 2: "building"}
        assert application.serves(old)

        new.gate.set()
        application.swapped()
        assert application.serves(new)
        assert application.generations() == {1: "previous", 2: "active"}
        assert application.found(LATE) == [late]
        assert gone not in application.found(TEXTS[0], top_k=50)
        assert application.document(late)["embedding"] == {"model": "hashing", "dim": 96, "generation": 2}
        assert_mirrors(application)
        application.upload("A heron stood in the reeds.")
        assert_mirrors(application)
        assert "reembedding" not in application.http.get("/readyz").json()["checks"]


def test_a_rebuild_embeds_the_same_texts_as_ingestion(tmp_path, old, new):
    with served(tmp_path / "data", old) as application:
        application.http.post(
            "/v1/documents", files={"file": ("a.md", b"# Report\n\n## Revenue\n\nIt rose.\n\n## Costs\n\nThey fell.\n")}
        )
        application.upload(*TEXTS)
        wait_until(lambda: len(old.documents) > len(TEXTS))
    with served(tmp_path / "data", new, old) as application:
        application.swapped()

    assert sorted(new.documents) == sorted(old.documents)


def test_the_tokens_are_on_the_tenants_bill_once(data_dir, old, new):
    with served(data_dir, new, old) as application:
        application.swapped()
        with application.state.database.read() as connection:
            rows = connection.execute(
                sa.select(usage_event).where(usage_event.c.request_id.startswith("reembed_"))
            ).all()

    assert sum(row.input_tokens for row in rows) == sum(new.count_tokens(text) for text in TEXTS)
    assert {(row.operation, row.status, row.tenant_id, row.user_id) for row in rows} == {
        ("embed_doc", "completed", "default", "")
    }
    assert len(rows) == 3


def test_confirming_a_swap_deletes_only_the_previous_generation(data_dir, old, new):
    with served(data_dir, new, old) as application:
        application.swapped()
        kept = index_folder(data_dir, 1)
        assert application.http.post("/v1/admin/generations/1/confirm").status_code == 409
        assert application.http.post("/v1/admin/generations/9/confirm").status_code == 404
        assert vectors(application.state) == {1: len(TEXTS), 2: len(TEXTS)}
        assert application.http.post("/v1/admin/generations/2/confirm").json()["status"] == "active"
        assert application.http.post("/v1/admin/generations/2/rollback").status_code == 409
    with served(data_dir, new) as application:  # the old embedder is needed no more
        wait_until(
            lambda: all(found.purged_at or found.id == 2 for found in application.state.corpus.generations.list())
        )
        assert vectors(application.state) == {2: len(TEXTS)}
        assert not kept.exists()
        assert application.generations() == {1: "retired", 2: "active"}
        assert_mirrors(application)


def test_the_way_back_takes_in_what_came_since_and_holds_over_a_restart(data_dir, old, new):
    with served(data_dir, new, old) as application:
        application.swapped()
        (late,) = application.upload(LATE)
        assert vectors(application.state) == {1: len(TEXTS), 2: len(TEXTS) + 1}
        answer = application.http.post("/v1/admin/generations/2/rollback")
        assert (answer.status_code, answer.json()["id"]) == (202, 1)
        application.swapped()
        assert application.serves(old)
        assert application.generations() == {1: "active", 2: "previous"}
        assert application.found(LATE) == [late]
        assert_mirrors(application)
    assert old.documents == [LATE]

    with served(data_dir, new, old) as application:  # the settings were not set back
        assert application.embedder_swap.building is None
        assert application.serves(old)
        assert application.generations() == {1: "active", 2: "previous"}
    with served(data_dir, old, new) as application:  # they were
        assert application.generations() == {1: "active", 2: "previous"}
    with served(data_dir, new, old) as application:  # and ask for the new one again
        application.swapped()
        assert application.serves(new)
        assert_mirrors(application)


def test_a_way_back_that_was_interrupted_goes_on_at_the_next_start(data_dir, old, new):
    with served(data_dir, new, old) as application:
        application.swapped()
        application.upload(LATE)
        old.gate.clear()
        application.http.post("/v1/admin/generations/2/rollback")
        wait_until(old.reading.is_set)
        application.state.corpus.generations.ready(1)  # even then
        close_during_a_block(application, old)
    with served(data_dir, new, old) as application:
        application.swapped()
        assert application.serves(old)
        assert_mirrors(application)


def test_settings_set_back_give_the_building_up_and_delete_its_vectors(data_dir, old, new):
    new.gate.clear()
    with served(data_dir, new, old) as application:
        assert new.reading.wait(timeout=20)
        close_during_a_block(application, new)
    with served(data_dir, old) as application:
        wait_until(lambda: application.state.corpus.generations.get(2).purged_at is not None)
        assert application.generations() == {1: "active", 2: "retired"}
        assert vectors(application.state) == {1: len(TEXTS)}
        assert_mirrors(application)


def test_an_embedder_that_fails_leaves_the_old_one_in_use_and_says_why(data_dir, old):
    def fail() -> None:
        raise ValueError("no such layer")

    with served(data_dir, GatedEmbedder(dim=96, before=fail), old) as application:
        wait_until(
            lambda: (
                application.embedder_swap.building is not None and application.embedder_swap.building.error is not None
            )
        )
        (building, _) = application.http.get("/v1/admin/generations").json()["data"]
        assert building["progress"]["error"] == "Something went wrong on our side; the log has it."
        readiness = application.http.get("/readyz").json()
        assert (readiness["ready"], readiness["checks"]["reembedding"]["stalled"]) == (True, True)
        application.upload(LATE)
        assert_mirrors(application)


def test_a_generation_in_use_that_lacks_vectors_is_mended_at_the_start(data_dir, old):
    with served(data_dir, old) as application, application.state.database.write() as connection:
        connection.execute(sa.delete(chunk_vector).where(chunk_vector.c.key % 2 == 0))
    with served(data_dir, old) as application:
        wait_until(lambda: vectors(application.state) == {1: len(TEXTS)})
        wait_until(lambda: len(application.serving.current().index) == len(TEXTS))
        assert_mirrors(application)
        assert np.unique(old.documents).size == len(old.documents) == len(TEXTS) // 2
