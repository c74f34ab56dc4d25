"""Vectors by generation: what is missing, what a deletion leaves, and taking them away in steps."""

from dataclasses import replace

import numpy as np

from app.db.index_generations import IndexGenerationRepository
from app.db.session import Database
from app.db.vectors import VectorRepository
from tests.app.db.samples import EMBEDDER, Library, vectors_of


def test_missing_are_the_visible_chunks_without_a_vector_by_key_with_their_headings(database: Database) -> None:
    library, vectors = Library(database), VectorRepository(database)
    library.index("alpha", "beta", "gamma", filename="a.txt")
    building = IndexGenerationRepository(database).prepare(replace(EMBEDDER, model="other"), source="").building
    assert building is not None
    assert vectors.missing(library.generation, after=-1, limit=10) == []
    assert vectors.progress(building.id) == (0, 3)

    block = vectors.missing(building.id, after=-1, limit=2)
    assert [(found.text, found.heading_path, found.tenant_id) for found in block] == [
        ("alpha", ("Part",), "t1"),
        ("beta", ("Part",), "t1"),
    ]
    vectors.store(building.id, block, vectors_of(2))
    vectors.store(building.id, block, vectors_of(2, first=5.0))  # a second time changes nothing
    assert [found.text for found in vectors.missing(building.id, after=-1, limit=10)] == ["gamma"]
    assert vectors.missing(building.id, after=block[-1].key + 1, limit=10) == []
    assert vectors.progress(building.id) == (2, 3)


def test_chunks_deleted_meanwhile_get_no_vector(database: Database) -> None:
    library, vectors = Library(database), VectorRepository(database)
    gone = library.index("alpha", "beta", filename="a.txt")
    library.index("gamma", filename="b.txt")
    building = IndexGenerationRepository(database).prepare(replace(EMBEDDER, model="other"), source="").building
    assert building is not None
    block = vectors.missing(building.id, after=-1, limit=10)
    library.documents.delete(gone.id, tenant_id="t1")

    vectors.store(building.id, block, vectors_of(3))

    assert vectors.progress(building.id) == (1, 1)


def test_a_purge_takes_one_generation_in_steps(database: Database) -> None:
    library, vectors = Library(database), VectorRepository(database)
    library.index("alpha", "beta", "gamma", filename="a.txt")
    building = IndexGenerationRepository(database).prepare(replace(EMBEDDER, model="other"), source="").building
    assert building is not None
    vectors.store(building.id, vectors.missing(building.id, after=-1, limit=10), np.ones((3, 4), np.float32))

    steps, last = 0, -1
    while (reached := vectors.purge(library.generation, after=last, limit=2)) is not None:
        steps, last = steps + 1, reached

    assert steps == 2
    assert vectors.progress(library.generation) == (0, 3)
    assert vectors.progress(building.id) == (3, 3)
