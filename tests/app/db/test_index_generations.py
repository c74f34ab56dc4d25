"""An index generation holds the vectors of one embedder only."""

from dataclasses import replace

import pytest

from app.db.index_generations import IndexGenerationRepository
from app.db.session import Database
from app.errors import Conflict
from retrieval.types import EmbedderInfo
from tests.app.db.samples import EMBEDDER, Library


def active_id(database: Database, embedder: EmbedderInfo) -> int:
    return IndexGenerationRepository(database).prepare(embedder, source="").active.id


def test_the_same_embedder_keeps_its_generation(database: Database) -> None:
    assert active_id(database, EMBEDDER) == active_id(database, EMBEDDER)


@pytest.mark.parametrize(
    "other",
    [replace(EMBEDDER, model="other"), replace(EMBEDDER, revision="r2"), replace(EMBEDDER, dim=8)],
    ids=["model", "revision", "dim"],
)
class TestAnotherEmbedder:
    def test_a_new_embedder_gets_a_new_active_generation_while_there_are_no_vectors(
        self, database: Database, other: EmbedderInfo
    ) -> None:
        first = active_id(database, EMBEDDER)

        assert active_id(database, other) != first
        assert active_id(database, other) == active_id(database, other)

    def test_a_new_embedders_generation_is_not_active_while_old_vectors_exist(
        self, database: Database, other: EmbedderInfo
    ) -> None:
        library = Library(database)
        created = library.index("words")

        assert active_id(database, other) == library.generation
        library.documents.delete(created.id, tenant_id="t1")
        assert active_id(database, other) != library.generation


def test_a_longer_input_limit_is_the_same_embedder(database: Database) -> None:
    assert active_id(database, EMBEDDER) == active_id(database, replace(EMBEDDER, max_tokens=999))


OTHER = replace(EMBEDDER, model="other", dim=8)
THIRD = replace(EMBEDDER, model="third")


def statuses(generations: IndexGenerationRepository) -> dict[str, str]:
    return {found.model: found.status.value for found in generations.list()}


class TestPrepare:
    def test_the_embedder_in_use_has_nothing_to_build(self, database: Database) -> None:
        standing = IndexGenerationRepository(database).prepare(EMBEDDER, source="tiny-folder")

        assert (standing.active.source, standing.building, standing.rejected) == ("tiny-folder", None, None)

    def test_another_is_built_beside_and_a_third_takes_its_place(self, database: Database) -> None:
        Library(database).index("words")
        generations = IndexGenerationRepository(database)
        first = generations.prepare(OTHER, source="")
        again = generations.prepare(OTHER, source="")
        assert first.building is not None
        assert again.building is not None
        assert first.building.id == again.building.id
        assert statuses(generations) == {"tiny": "active", "other": "building"}

        generations.prepare(THIRD, source="")
        assert statuses(generations) == {"tiny": "active", "other": "retired", "third": "building"}
        assert [found.model for found in generations.unpurged()] == ["other"]

    def test_only_what_is_built_is_activated_and_one_alone_is_active(self, database: Database) -> None:
        Library(database).index("words")
        generations = IndexGenerationRepository(database)
        building = generations.prepare(OTHER, source="").building
        assert building is not None
        generations.ready(building.id)
        active = generations.activate(building.id)

        assert statuses(generations) == {"tiny": "previous", "other": "active"}
        assert [found.model for found in generations.before(active.id)] == ["tiny"]
        with pytest.raises(Conflict, match="not being built"):
            generations.activate(active.id)
        generations.retire(active.id)
        assert statuses(generations)["other"] == "active", "what is searched cannot be let go"
        with pytest.raises(Conflict):
            generations.before(generations.list()[-1].id)

    def test_what_was_gone_back_from_waits_until_the_settings_were_set_back(self, database: Database) -> None:
        Library(database).index("words")
        generations = IndexGenerationRepository(database)
        building = generations.prepare(OTHER, source="").building
        assert building is not None
        generations.activate(building.id)
        (before,) = generations.before(building.id)
        generations.go_back(before.id)
        interrupted = generations.prepare(OTHER, source="")
        assert (interrupted.active.id, interrupted.building and interrupted.building.id) == (building.id, before.id)
        generations.activate(before.id)

        refused = generations.prepare(OTHER, source="")
        assert (refused.building, refused.rejected and refused.rejected.id) == (None, building.id)
        assert generations.prepare(EMBEDDER, source="").rejected is None
        asked_again = generations.prepare(OTHER, source="").building
        assert asked_again is not None
        assert asked_again.id == building.id
