"""retrieval.device_index finds on a GPU what the index in memory finds, and falls back to it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import faiss
import numpy as np
import pytest

from retrieval.device_copy import MOST, gpu_transfer
from retrieval.device_index import DeviceIndex
from retrieval.errors import IndexDeviceUnavailable
from retrieval.flat_index import FlatIndex
from retrieval.inverted_index import InvertedIndex
from retrieval.key_set import KeySet
from retrieval.ports import Vectors
from tests.retrieval.exact_index import ExactIndex
from tests.retrieval.fake_gpu import FakeGpu
from tests.retrieval.test_inverted_index import Narrow, clustered
from tests.retrieval.test_vector_index_contract import unexpected

COUNT, DIM = 6000, 32
TOPICS, ASKED = clustered(COUNT, queries=10)
# Multiples of 1/1024: float32 holds their products and sums exactly, so that every processor finds the same order.
VECTORS, QUESTIONS = ((np.round(each * 1024) / 1024).astype(np.float32) for each in (TOPICS, ASKED))


class Source(FlatIndex):
    """Counts the searches it answers itself."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.searches = 0

    def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
        self.searches += 1
        return super().search(query, k=k, allowed=allowed)


class Bench:
    """An index on a device, its parts, and the oracle that gets the same vectors."""

    def __init__(self, *, count: int = COUNT, refresh_after: int = 100_000, full: bool = False) -> None:
        self.gpu, self.source, self.exact = FakeGpu(), Source(DIM), ExactIndex(DIM)
        self.source.add(np.arange(count), VECTORS[:count])
        self.exact.add(np.arange(count), VECTORS[:count])
        self.reported: list[Exception] = []
        self.gpu.full = full
        self.index = DeviceIndex(
            self.source, transfer=self.gpu.transfer, report=self.reported.append, refresh_after=refresh_after
        )

    def serves(self) -> bool:
        return self.index.on_device

    def assert_exact(self, *, k: int = 20, allowed: KeySet | None = None, questions: Vectors = QUESTIONS) -> None:
        for question in questions:
            found = self.index.search(question, k=k, allowed=allowed)
            expected = self.exact.search(question, k=k, allowed=allowed)
            assert [key for key, _ in found] == [key for key, _ in expected]
            assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-6)


def test_an_open_search_is_answered_by_the_device_alone() -> None:
    bench = Bench()

    bench.assert_exact()

    assert bench.source.searches == 0
    assert len(bench.gpu.searches) >= len(QUESTIONS)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_a_wide_filter_is_answered_by_the_device_with_more_fetched_than_asked_for(share: float) -> None:
    bench = Bench()
    allowed = KeySet(np.random.default_rng(1).choice(COUNT, int(share * COUNT), replace=False))

    bench.assert_exact(allowed=allowed)

    assert bench.source.searches == 0
    assert min(bench.gpu.searches) > 20 / share
    if share >= 0.5:  # chance has little say: what is fetched at first is enough
        assert len(bench.gpu.searches) == len(QUESTIONS)


def test_a_narrow_filter_does_not_reach_the_device() -> None:
    bench = Bench()

    bench.assert_exact(k=100, allowed=KeySet(np.arange(0, COUNT, 100)))

    assert bench.gpu.searches == []
    assert bench.source.searches == len(QUESTIONS)


def test_where_the_allowed_are_far_away_it_fetches_twice_as_many_again_and_again_and_then_asks_the_source() -> None:
    bench = Bench()
    far = KeySet(np.argsort(VECTORS @ QUESTIONS[0])[: COUNT // 2])

    bench.assert_exact(allowed=far, questions=QUESTIONS[:1])

    assert len(bench.gpu.searches) > 2
    assert all(after == 2 * before for before, after in zip(bench.gpu.searches, bench.gpu.searches[1:], strict=False))
    assert max(bench.gpu.searches) <= MOST < 2 * max(bench.gpu.searches)
    assert bench.source.searches == 1


def test_where_everything_fits_into_one_search_even_a_narrow_filter_is_answered_by_the_device() -> None:
    bench = Bench(count=1500)
    few = KeySet(np.argsort(VECTORS[:1500] @ QUESTIONS[0])[:30])

    bench.assert_exact(allowed=few, questions=QUESTIONS[:1])

    assert bench.gpu.searches == [1500]
    assert bench.source.searches == 0


def test_more_than_a_device_can_find_is_asked_of_the_source() -> None:
    bench = Bench()

    bench.assert_exact(k=MOST)

    assert bench.gpu.searches == []


def test_more_ties_than_a_device_can_tell_are_told_by_the_source() -> None:
    bench = Bench(count=0)
    bench.index.add(np.arange(3000), np.repeat(VECTORS[:1], 3000, axis=0))
    again = DeviceIndex(bench.source, transfer=bench.gpu.transfer, report=bench.reported.append)

    assert [key for key, _ in again.search(VECTORS[0], k=3, allowed=None)] == [0, 1, 2]
    assert max(bench.gpu.searches) <= MOST
    assert bench.source.searches == 1


def test_what_was_added_replaced_and_removed_since_the_copy_counts_at_once() -> None:
    bench = Bench()
    question = QUESTIONS[0]
    (best, _), (second, _) = bench.exact.search(question, k=2, allowed=None)
    for index in (bench.index, bench.exact):
        index.remove(np.array([best]))
        index.add(np.array([second, COUNT + 7]), np.stack([-question, question]))

    bench.assert_exact()
    bench.assert_exact(allowed=KeySet(np.array([*range(0, COUNT, 2), best, second, COUNT + 7])))

    assert [key for key, _ in bench.index.search(question, k=1, allowed=None)] == [COUNT + 7]
    assert len(bench.gpu.copies) == 1
    assert bench.source.searches == 0


def test_neighbours_that_moved_away_or_left_since_the_copy_do_not_take_the_places_of_others() -> None:
    bench = Bench()
    question = QUESTIONS[0]
    nearest = np.array([key for key, _ in bench.exact.search(question, k=120, allowed=None)])
    close = (question + 0.001 * np.random.default_rng(5).standard_normal((60, DIM))).astype(np.float32)
    for index in (bench.index, bench.exact):
        index.add(nearest[:60], np.repeat(-question[None, :], 60, axis=0))
        index.remove(nearest[60:])
        index.add(np.arange(COUNT, COUNT + 60), close)
        index.remove(np.arange(COUNT, COUNT + 45))

    bench.assert_exact(k=18)

    assert bench.source.searches == 0


def test_any_mixture_of_changes_and_filters_finds_what_brute_force_finds() -> None:
    bench = Bench(count=3000, refresh_after=700)
    random = np.random.default_rng(3)
    for _ in range(12):
        new = random.choice(COUNT, 150, replace=False)
        vectors = VECTORS[random.choice(COUNT, 150, replace=False)] + 0.01 * random.standard_normal((150, DIM))
        gone = random.choice(COUNT, 100, replace=False)
        for index in (bench.index, bench.exact):
            index.add(new, vectors.astype(np.float32))
            index.remove(gone)
        bench.assert_exact()
        bench.assert_exact(allowed=KeySet(random.choice(COUNT, int(random.uniform(0.02, 1) * COUNT), replace=False)))

    assert len(bench.gpu.copies) > 2
    assert len(bench.gpu.searches) > 100


def test_the_copy_is_made_anew_after_enough_changes() -> None:
    bench = Bench(refresh_after=100)
    bench.index.add(np.arange(COUNT, COUNT + 60), VECTORS[:60])
    assert len(bench.gpu.copies) == 1
    bench.index.remove(np.arange(40))
    assert len(bench.gpu.copies) == 2

    bench.exact.add(np.arange(COUNT, COUNT + 60), VECTORS[:60])
    bench.exact.remove(np.arange(40))
    bench.assert_exact()
    assert bench.source.searches == 0


def test_an_old_copy_is_closed_when_another_takes_its_place_and_the_last_with_the_index() -> None:
    bench = Bench(refresh_after=10)
    bench.index.remove(np.arange(10))
    old, new = bench.gpu.copies

    assert old.search(QUESTIONS[0], n=1, probes=0) is None
    assert new.search(QUESTIONS[0], n=1, probes=0) is not None
    bench.index.close()
    assert new.search(QUESTIONS[0], n=1, probes=0) is None


def test_many_searches_that_fail_on_one_copy_are_one_failure() -> None:
    together = Barrier(8)

    class Gathering(Source):
        def candidates(self, k: int) -> int:
            together.wait(timeout=20)  # each of them has the same copy before its eyes
            return super().candidates(k)

    source, gpu = Gathering(DIM), FakeGpu()
    source.add(np.arange(COUNT), VECTORS)
    gpu.broken = True
    reported: list[Exception] = []
    index = DeviceIndex(source, transfer=gpu.transfer, report=reported.append)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: index.search(QUESTIONS[0], k=5, allowed=None), range(8)))

    assert len(reported) == 1
    assert len({tuple(each) for each in found}) == 1


def test_a_device_that_fails_is_reported_once_and_tried_again_at_the_next_refresh() -> None:
    bench = Bench(refresh_after=10)
    bench.gpu.broken = True

    bench.assert_exact()

    assert not bench.serves()
    assert len(bench.reported) == len(bench.gpu.searches) == 1
    assert bench.source.searches == len(QUESTIONS)

    bench.gpu.broken = False
    bench.index.remove(np.arange(10))
    bench.exact.remove(np.arange(10))
    bench.assert_exact()
    assert bench.serves()
    assert bench.source.searches == len(QUESTIONS)


def test_a_copy_that_does_not_fit_is_reported_and_the_source_answers() -> None:
    bench = Bench(full=True)

    bench.assert_exact()

    assert not bench.serves()
    assert len(bench.reported) == 1
    assert bench.gpu.searches == []


def test_what_was_written_while_the_device_was_away_is_found_when_it_is_back() -> None:
    bench = Bench(full=True, refresh_after=10)
    bench.index.add(np.array([COUNT]), QUESTIONS[:1])
    bench.exact.add(np.array([COUNT]), QUESTIONS[:1])
    bench.assert_exact()
    bench.gpu.full = False
    bench.index.remove(np.arange(9))
    bench.exact.remove(np.arange(9))

    bench.assert_exact()

    assert bench.serves()


def test_closing_gives_the_device_back_and_the_source_answers() -> None:
    bench = Bench()
    bench.index.close()

    bench.assert_exact()

    assert not bench.serves()
    assert bench.gpu.searches == []


@pytest.mark.parametrize("share", [None, 0.5, 0.2, 0.01])
def test_an_inverted_index_finds_on_a_device_what_it_finds_in_memory(share: float | None) -> None:
    trained = InvertedIndex.train(TOPICS, lists=64, exact=None, threads=1)
    source, gpu = Narrow(DIM, trained=trained), FakeGpu()
    source.add(np.arange(COUNT - 50), TOPICS[:-50])
    index = DeviceIndex(source, transfer=gpu.transfer, report=unexpected)
    index.add(np.arange(COUNT - 50, COUNT), TOPICS[-50:])
    allowed = None if share is None else KeySet(np.arange(0, COUNT, int(1 / share)))
    exact = ExactIndex(DIM)
    exact.add(np.arange(COUNT), TOPICS)

    shared = 0
    for question in ASKED:
        found = index.search(question, k=10, allowed=allowed)
        expected = {key for key, _ in source.search(question, k=10, allowed=allowed)}
        right = {key for key, _ in exact.search(question, k=10, allowed=allowed)}
        keys = {key for key, _ in found}
        assert len(keys & right) >= len(expected & right)
        shared += len(keys & right)

    assert shared >= 0.95 * 10 * len(ASKED)
    assert bool(gpu.searches) == (share is None or share >= 0.2)


def test_where_the_lists_read_hold_too_few_the_source_reads_more() -> None:
    trained = InvertedIndex.train(TOPICS, lists=64, exact=None, threads=1)
    source, gpu = Narrow(DIM, trained=trained), FakeGpu()
    source.add(np.arange(COUNT), TOPICS)
    index = DeviceIndex(source, transfer=gpu.transfer, report=unexpected)

    assert len(index.search(ASKED[0], k=1200, allowed=None)) == 1200
    assert len(gpu.searches) == 1


@pytest.mark.skipif(hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0, reason="there is a GPU")
def test_without_a_gpu_or_a_faiss_built_for_one_the_setting_is_refused_by_name() -> None:
    with pytest.raises(IndexDeviceUnavailable, match="FOOTNOTE_INDEX_DEVICE=cuda needs"):
        gpu_transfer()
