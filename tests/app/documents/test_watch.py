"""app.documents.watch: watchers see every change, and cost few reads however many they are."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest

from app.documents.watch import DocumentKey, DocumentWatch, Followed
from app.errors import StoreUnavailable
from app.types import Document, DocumentStatus

SOON_S = 10


class Shelf:
    """Documents in memory that count their reads; time passes when the watch sleeps."""

    def __init__(self, *names: str) -> None:
        self.documents = {("acme", name): document_named(name) for name in names}
        self.reads: list[float] = []
        self.trouble: Exception | None = None
        self.now = 0.0
        self.until = math.inf
        self.slept = asyncio.Event()

    def read_many(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, Document]:
        self.reads.append(self.now)
        if self.trouble is not None:
            raise self.trouble
        return {key: self.documents[key] for key in keys if key in self.documents}

    def watch(self) -> DocumentWatch:
        return DocumentWatch(self, clock=lambda: self.now, sleep=self._sleep)

    async def pass_time(self, seconds: float) -> None:
        """Until the watch has slept for so many seconds."""
        self.until, self.slept = self.now + seconds, asyncio.Event()
        async with asyncio.timeout(SOON_S):
            await self.slept.wait()

    def change(self, name: str, status: DocumentStatus) -> None:
        self.documents["acme", name] = replace(self.documents["acme", name], status=status)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.until:
            self.until = math.inf
            self.slept.set()
        await asyncio.sleep(0)


def document_named(name: str) -> Document:
    return Document(
        id=name,
        tenant_id="acme",
        collection_id="col_1",
        external_id=None,
        filename=f"{name}.txt",
        media_type=None,
        bytes=1,
        sha256="",
        metadata={},
        version=1,
        live_version=None,
        status=DocumentStatus.QUEUED,
        done=0,
        total=0,
        pages=0,
        chunks=0,
        tokens=0,
        embedding_model=None,
        embedding_dim=None,
        embedding_generation=None,
        embedding_tokens=0,
        attempts=0,
        error_code=None,
        error_detail=None,
        next_attempt_at=None,
        job_id="job_1",
        created_at=0.0,
        updated_at=0.0,
    )


async def changed(followed: Followed) -> Document | None:
    async with asyncio.timeout(SOON_S):
        await followed.changed(seconds=SOON_S)
    return followed.document


async def test_a_change_reaches_every_watcher_and_a_deletion_too():
    shelf = Shelf("a", "b")
    watch, one = shelf.watch(), shelf.documents["acme", "a"]
    with watch.following(one) as first, watch.following(one) as second:
        shelf.change("a", DocumentStatus.EMBEDDING)
        for followed in (first, second):
            found = await changed(followed)
            assert found is not None
            assert found.status is DocumentStatus.EMBEDDING
        del shelf.documents["acme", "a"]
        assert await changed(first) is None
    assert len(watch) == 0


async def test_a_watcher_who_comes_with_news_tells_the_others():
    shelf = Shelf("a")
    watch, old = shelf.watch(), shelf.documents["acme", "a"]
    with watch.following(old) as first:
        new = replace(old, status=DocumentStatus.INDEXED)
        shelf.documents["acme", "a"] = new
        with watch.following(new):
            assert await changed(first) == new


async def test_without_a_change_a_watcher_waits_no_longer_than_it_says():
    shelf = Shelf("a")
    one = shelf.documents["acme", "a"]
    with shelf.watch().following(one) as followed:
        await followed.changed(seconds=0.01)
        assert followed.document is one


@pytest.mark.parametrize(("documents", "watchers_of_each"), [(1, 300), (300, 1), (30, 10)])
async def test_three_hundred_watchers_of_waiting_documents_cost_one_read_in_two_seconds(documents, watchers_of_each):
    names = [f"doc_{number}" for number in range(documents)]
    shelf = Shelf(*names)
    watch = shelf.watch()
    with ExitStack() as stack:
        for name in names:
            for _ in range(watchers_of_each):
                stack.enter_context(watch.following(shelf.documents["acme", name]))
            await shelf.pass_time(0.03)  # they come one after another
        await shelf.pass_time(60)
        before = len(shelf.reads)
        await shelf.pass_time(60)
        spent = len(shelf.reads) - before

    assert 20 <= spent <= 60, "a read a second at most"
    pauses = [later - earlier for earlier, later in zip(shelf.reads, shelf.reads[1:], strict=False)]
    assert min(pauses) >= 0.1 - 1e-9, "never more than ten a second"


async def test_after_a_change_a_document_is_read_often_again():
    shelf = Shelf("a")
    with shelf.watch().following(shelf.documents["acme", "a"]) as followed:
        await shelf.pass_time(60)
        shelf.change("a", DocumentStatus.EMBEDDING)
        await changed(followed)
        before = len(shelf.reads)
        await shelf.pass_time(1)

    assert len(shelf.reads) - before >= 4


async def are_over(shelf: "Shelf") -> bool:
    """Whether there is a tenth of a second without a read; one that is under way in its thread may end before."""
    for _ in range(30):
        reads = len(shelf.reads)
        for _ in range(10):
            await asyncio.sleep(0.01)
        if len(shelf.reads) == reads:
            return True
    return False


async def test_nobody_watching_costs_nothing_and_a_new_watcher_is_served():
    shelf = Shelf("a")
    watch = shelf.watch()
    for status in (DocumentStatus.EMBEDDING, DocumentStatus.INDEXED):
        with watch.following(shelf.documents["acme", "a"]) as followed:
            shelf.change("a", status)
            found = await changed(followed)
            assert found is not None
            assert found.status is status
        assert await are_over(shelf), "documents are read for nobody"


async def test_while_the_database_is_unavailable_watchers_wait():
    shelf = Shelf("a")
    with shelf.watch().following(shelf.documents["acme", "a"]) as followed:
        shelf.trouble = StoreUnavailable("The database is busy.")
        await shelf.pass_time(10)
        shelf.trouble = None
        shelf.change("a", DocumentStatus.INDEXED)
        found = await changed(followed)
    assert found is not None
    assert found.status is DocumentStatus.INDEXED
    assert len(shelf.reads) < 20


async def test_a_fault_of_ours_reaches_the_watchers_and_the_next_one_begins_anew():
    shelf = Shelf("a")
    watch = shelf.watch()
    with watch.following(shelf.documents["acme", "a"]) as followed:
        shelf.trouble = ZeroDivisionError()
        with pytest.raises(ZeroDivisionError):
            await changed(followed)
    shelf.trouble = None
    with watch.following(shelf.documents["acme", "a"]) as followed:
        shelf.change("a", DocumentStatus.INDEXED)
        assert await changed(followed) is not None
