"""retrieval.search fuses both searches inside the caller's scope."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from retrieval.filters import parse_filter
from retrieval.key_set import KeySet
from retrieval.ports import Keys, VectorIndex, Vectors
from retrieval.search import Search
from retrieval.types import Hit, Metadata, Scope, SearchMode
from tests.retrieval.exact_index import ExactIndex
from tests.retrieval.fakes import HashingEmbedder, Inside, MemoryStore, chunk

MINE = Scope(tenant_id="t")


class World:
    """A store and an index that hold the same chunks."""

    def __init__(self, embedder: HashingEmbedder | None = None) -> None:
        self.embedder = embedder or HashingEmbedder()
        self.store = MemoryStore()
        self.index: VectorIndex = ExactIndex(self.embedder.info.dim)
        self.search = Search(Inside(lambda: self.index, self.store), self.store, self.store)

    def put(
        self, key: int, text: str, *, tenant_id: str = "t", metadata: Metadata | None = None, **fields: Any
    ) -> None:
        self.store.put(chunk(key, text, **fields), tenant_id=tenant_id, metadata=metadata)
        self.index.add(*self._row(key, text))

    def _row(self, key: int, text: str) -> tuple[Keys, Vectors]:
        return np.array([key]), self.embedder.embed_documents([text])

    def keys(self, query: str, *, scope: Scope = MINE, top_k: int = 8, **options: Any) -> list[int]:
        return [hit.chunk.key for hit in self.hits(query, scope=scope, top_k=top_k, **options)]

    def hits(self, query: str, *, scope: Scope = MINE, top_k: int = 8, **options: Any) -> tuple[Hit, ...]:
        vector = partial(self.embedder.embed_query, query)
        return self.search.search(query, scope=scope, top_k=top_k, vector=vector, **options)


@pytest.fixture
def world() -> World:
    world = World()
    world.put(1, "the cat sat on the mat", document_id="d1", metadata={"year": 2023})
    world.put(2, "revenue rose by twelve percent", document_id="d2", metadata={"year": 2024})
    world.put(3, "the revenue of the cat shop", document_id="d3", collection_id="c2", metadata={"year": 2025})
    world.put(9, "revenue rose by twelve percent", tenant_id="other", document_id="d2")
    return world


@pytest.mark.parametrize("mode", list(SearchMode))
def test_the_best_match_comes_first(world: World, mode: SearchMode) -> None:
    assert world.keys("revenue rose percent", mode=mode)[0] == 2


def test_hits_carry_the_scores_of_the_searches_that_found_them(world: World) -> None:
    by_key = {hit.chunk.key: hit.scores for hit in world.hits("revenue rose", scope=MINE, top_k=8)}

    assert by_key[2].lexical == 2.0
    assert by_key[2].dense == pytest.approx(2 / 10**0.5, abs=0.2)
    assert by_key[2].fused == 1.0, "the best of both"
    assert 0.0 < by_key[3].fused < 1.0
    assert by_key[1].lexical is None
    assert by_key[1].dense is not None


@pytest.mark.parametrize("mode", [SearchMode.DENSE, SearchMode.LEXICAL])
def test_alone_a_search_keeps_its_own_order(world: World, mode: SearchMode) -> None:
    hits = world.hits("revenue rose", scope=MINE, top_k=8, mode=mode)
    own = [getattr(hit.scores, mode.value) for hit in hits]

    assert own == sorted(own, reverse=True)
    assert hits[0].scores.fused == 1.0
    assert [hit.scores.fused for hit in hits] == sorted((hit.scores.fused for hit in hits), reverse=True)
    other = SearchMode.LEXICAL if mode is SearchMode.DENSE else SearchMode.DENSE
    assert all(getattr(hit.scores, other.value) is None for hit in hits)


@pytest.mark.parametrize("mode", list(SearchMode))
@pytest.mark.parametrize(
    ("scope", "visible"),
    [
        (MINE, {1, 2, 3}),
        (Scope(tenant_id="other"), {9}),
        (Scope(tenant_id="nobody"), set()),
        (Scope(tenant_id="t", collection_ids=("c2",)), {3}),
        (Scope(tenant_id="t", document_ids=("d1", "d2")), {1, 2}),
        (Scope(tenant_id="t", document_ids=()), set()),
        (Scope(tenant_id="t", filter=parse_filter({"year": {"$gte": 2024}})), {2, 3}),
    ],
)
def test_nothing_outside_the_scope_is_found(world: World, mode: SearchMode, scope: Scope, visible: set[int]) -> None:
    assert set(world.keys("the revenue rose", scope=scope, mode=mode)) == visible


def test_a_narrow_scope_still_fills_top_k() -> None:
    world = World()
    for key in range(100):
        world.put(key, "revenue rose", document_id="crowd")
    for key in range(100, 105):
        world.put(key, "something else entirely", document_id="few")

    few = Scope(tenant_id="t", document_ids=("few",))
    assert len(world.keys("revenue rose", scope=few, top_k=5, candidates=5)) == 5


def test_a_hit_deleted_meanwhile_is_left_out_and_the_next_takes_its_place(world: World) -> None:
    class DeletingIndex(ExactIndex):
        """Deletes chunk 2 from the store between the search and the reading of chunks."""

        def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
            found = super().search(query, k=k, allowed=allowed)
            world.store.delete(2)
            return found

    index = DeletingIndex(world.embedder.info.dim)
    index.add(world.index.keys(), world.embedder.embed_documents([""] * len(world.index)))
    world.index = index

    assert world.keys("revenue rose", top_k=2, mode=SearchMode.DENSE) == [1, 3]


def test_a_stale_index_entry_is_no_hit(world: World) -> None:
    world.store.delete(2)

    assert 2 not in world.keys("revenue rose")


def test_a_swapped_index_serves_the_next_search(world: World) -> None:
    world.index = ExactIndex(world.embedder.info.dim)

    assert world.keys("revenue rose", mode=SearchMode.DENSE) == []


def test_a_lexical_search_embeds_nothing(world: World) -> None:
    assert world.keys("revenue", mode=SearchMode.LEXICAL) != []
    assert world.embedder.embedded == []


@pytest.mark.parametrize(("query", "scope"), [("  \n", MINE), ("revenue", Scope(tenant_id="nobody"))])
def test_no_question_or_no_documents_cost_nothing(world: World, query: str, scope: Scope) -> None:
    assert world.hits(query, scope=scope, top_k=3) == ()
    assert world.embedder.embedded == []


@pytest.mark.parametrize("options", [{"top_k": 0}, {"top_k": -1}, {"top_k": 1, "candidates": 0}])
def test_less_than_one_hit_cannot_be_asked_for(world: World, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        world.hits("x", **options)


def test_a_passage_that_the_best_one_names_by_its_heading_comes_before_its_equals(world: World) -> None:
    world.put(20, "revenue rose by half in the Lighthouse branch", document_id="d20")
    world.put(21, "percent of the keepers retired", document_id="d21", heading_path=("Keepers",))
    world.put(22, "percent of the keepers retired", document_id="d22", heading_path=("Lighthouse branch",))

    order = world.keys("by what percent did revenue rise in half the branch", top_k=6)

    assert order.index(22) < order.index(21)
    assert world.keys("percent of keepers", mode=SearchMode.LEXICAL)[:2] == [21, 22], "alone a search keeps its order"
