"""One embedder an index generation; vectors of two never mix."""

from dataclasses import replace

import pytest

from app.db.generations import GenerationRepository
from app.db.session import Database
from app.errors import SetupError
from tests.app.db.samples import EMBEDDER, Library


def test_the_same_embedder_keeps_its_generation(database: Database) -> None:
    generations = GenerationRepository(database)

    assert generations.ensure(EMBEDDER) == generations.ensure(EMBEDDER)


@pytest.mark.parametrize(
    "other",
    [replace(EMBEDDER, model="other"), replace(EMBEDDER, revision="r2"), replace(EMBEDDER, dim=8)],
    ids=["model", "revision", "dim"],
)
class TestAnotherEmbedder:
    def test_starts_anew_while_there_are_no_vectors(self, database: Database, other) -> None:
        generations = GenerationRepository(database)
        first = generations.ensure(EMBEDDER)

        assert generations.ensure(other) != first
        assert generations.ensure(other) == generations.ensure(other)

    def test_is_refused_once_there_are_vectors(self, database: Database, other) -> None:
        library = Library(database)
        created = library.index("words")
        generations = GenerationRepository(database)

        with pytest.raises(SetupError, match=f"built with the embedder {EMBEDDER.model}"):
            generations.ensure(other)
        assert generations.ensure(EMBEDDER) == library.generation
        library.documents.delete(created.id, tenant_id="t1")
        assert generations.ensure(other) != library.generation


def test_a_longer_input_limit_is_the_same_embedder(database: Database) -> None:
    generations = GenerationRepository(database)

    assert generations.ensure(EMBEDDER) == generations.ensure(replace(EMBEDDER, max_tokens=999))
