"""The embedding stage: embeds parsed documents and publishes them, small ones in batches, large ones in blocks."""

import threading
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa

from app.db.checkpoints import Checkpoint
from app.db.document_rows import ClaimedJob
from app.db.publishing import CommitResult, Version
from app.documents.index_ports import IndexRows
from app.documents.indexes import Indexes
from app.errors import BudgetExceeded, StorageFull, StoreUnavailable
from app.jobs.attempt import Attempt, Ingestion, Overtaken, Stopped
from app.jobs.embed_queue import EmbedQueue
from app.jobs.outcomes import Outcomes
from app.jobs.parse_stage import progress_of
from app.types import UsageStatus
from ingestion.pipeline import EmbeddingBlock
from ingestion.types import Stage, StageProgress
from retrieval.ports import Keys, Vectors

_Written: TypeAlias = tuple[Attempt, Vectors, CommitResult]

_MOST_DOCUMENTS = 256  # in one call of the embedder: more documents fill its batches more evenly
_MOST_WRITTEN = 64  # in one transaction, for which all other writers wait


class EmbedStage:
    """The work of the embedding thread. Small documents are embedded between two blocks of a large one."""

    def __init__(
        self,
        ingestion: Ingestion,
        *,
        indexes: Indexes,
        queue: EmbedQueue,
        outcomes: Outcomes,
        stop: threading.Event,
    ) -> None:
        self._jobs = ingestion.jobs
        self._files = ingestion.files
        self._pipeline = ingestion.pipeline
        self._billing = ingestion.billing
        self._instruments = ingestion.instruments
        self._indexes = indexes
        self._queue = queue
        self._outcomes = outcomes
        self._stop = stop
        self._large: tuple[Attempt, Iterator[None]] | None = None

    def turn(self, *, seconds: float) -> bool:
        """Embed small documents, one block of a large one, or both; False when none came within `seconds`."""
        taken = self._queue.take(
            large=self._large is None,
            most_passages=self._pipeline.block_passages,
            most_documents=_MOST_DOCUMENTS,
            seconds=0.0 if self._large else seconds,
        )
        if taken and taken[0].is_large:
            self._large = (taken[0], self._blocks(taken[0]))
        elif taken:
            self._together(taken)
        if self._large is not None:
            self._advance(*self._large)
        return bool(taken) or self._large is not None

    def close(self) -> None:
        """Put the large document in progress back into the job queue; its finished blocks are kept."""
        if self._large is not None:
            self._outcomes.end(self._large[0], Stopped())
            self._large = None

    def _advance(self, attempt: Attempt, blocks: Iterator[None]) -> None:
        try:
            next(blocks)
        except StopIteration:
            self._large = None
        except Exception as error:  # noqa: BLE001 - one document's failure must not stop the others
            self._large = None
            self._outcomes.end(attempt, error)

    def _blocks(self, attempt: Attempt) -> Iterator[None]:
        """Embed a large document, one block per step, after the blocks that earlier attempts kept."""
        prepared, generation = attempt.ready, self._indexes.generation
        kept = self._jobs.checkpoints(attempt.job.id, generation=generation)
        done: list[Vectors | None] = [_same(block, kept.get(block.first_ordinal)) for block in prepared.blocks]
        left = [place for place, vectors in enumerate(done) if vectors is None]
        assert left, "the last block has no checkpoint: its commit follows"
        start = prepared.blocks[left[0]].first_ordinal
        if not self._begin([(attempt, start, sum(prepared.blocks[place].tokens for place in left))]):
            return
        report = progress_of(self._jobs, attempt.job, self._stop)
        for place in left:
            block, total = prepared.blocks[place], attempt.passages

            def on_batch(count: int, first: int = block.first_ordinal, total: int = total) -> None:
                report(StageProgress(Stage.EMBEDDING, first + count, total))

            with self._instruments.together("embed", [attempt.work]):
                (vectors,) = self._pipeline.embed([block], on_batch=on_batch)
            done[place] = vectors
            attempt.read_tokens += block.tokens
            if place != len(done) - 1:
                self._keep(attempt, block, vectors, generation=generation)
            yield
        vectors = np.concatenate([each for each in done if each is not None])
        self._publish(self._commit([attempt], [vectors], generation=generation))

    def _keep(self, attempt: Attempt, block: EmbeddingBlock, vectors: Vectors, *, generation: int) -> None:
        assert attempt.event_id is not None, "reserved before the first block"
        checkpoint = Checkpoint(
            first_ordinal=block.first_ordinal,
            digest=block.digest,
            generation=generation,
            event_id=attempt.event_id,
            tokens=block.tokens,
            vectors=vectors,
        )
        if not self._jobs.keep(attempt.job, checkpoint, total=attempt.passages):
            raise Overtaken
        attempt.kept_tokens += block.tokens

    def _together(self, attempts: Sequence[Attempt]) -> None:
        """Embed small documents in one call and write them in few transactions."""
        try:
            begun = self._begin([(attempt, 0, attempt.ready.tokens) for attempt in attempts])
        except Exception as error:  # noqa: BLE001 - every attempt must get an outcome
            for attempt in attempts:
                self._outcomes.end(attempt, error)
            return
        if begun:
            self._embed(begun)

    def _embed(self, attempts: Sequence[Attempt]) -> None:
        try:
            generation = self._indexes.generation
            blocks = [attempt.ready.blocks[0] for attempt in attempts]
            with self._instruments.together("embed", [attempt.work for attempt in attempts]):
                vectors = self._pipeline.embed(blocks, on_batch=self._go_on)
        except Exception as error:  # noqa: BLE001 - as above
            if len(attempts) == 1 or isinstance(error, Stopped):
                for attempt in attempts:
                    self._outcomes.end(attempt, error)
                return
            for attempt in attempts:  # one document that cannot be embedded must not fail the others
                self._embed([attempt])
            return
        for attempt in attempts:
            attempt.read_tokens = attempt.ready.tokens
        for first in range(0, len(attempts), _MOST_WRITTEN):
            part = slice(first, first + _MOST_WRITTEN)
            self._write(attempts[part], vectors[part], generation=generation)

    def _write(self, attempts: Sequence[Attempt], vectors: Sequence[Vectors], *, generation: int) -> None:
        try:
            written = self._commit(attempts, vectors, generation=generation)
        except Exception as error:  # noqa: BLE001 - as above
            if len(attempts) == 1 or isinstance(error, StorageFull | StoreUnavailable):
                for attempt in attempts:
                    self._outcomes.end(attempt, error)
                return
            for attempt, rows in zip(attempts, vectors, strict=True):
                self._write([attempt], [rows], generation=generation)
            return
        self._publish(written)

    def _begin(self, wanted: Sequence[tuple[Attempt, int, int]]) -> list[Attempt]:
        """Reserve the tokens of attempts, given as (attempt, passages done, tokens); returns those to embed.

        The others get their outcome here: their job no longer runs, or a budget has no room for them.
        """
        by_job = {attempt.job: (attempt, tokens) for attempt, _, tokens in wanted}
        events: dict[ClaimedJob, str] = {}
        refused: dict[ClaimedJob, BudgetExceeded] = {}

        def reserve(connection: sa.Connection, job: ClaimedJob) -> None:
            attempt, tokens = by_job[job]
            try:
                events[job] = self._billing.reserve_in(connection, attempt, tokens=tokens)
            except BudgetExceeded as error:
                refused[job] = error

        reports = {attempt.job: (done, attempt.passages) for attempt, done, _ in wanted}
        self._jobs.progress_of(reports, Stage.EMBEDDING, also=reserve)
        begun = []
        for attempt, _, _ in wanted:
            attempt.event_id = events.get(attempt.job)
            if attempt.job in refused:
                self._outcomes.end(attempt, refused[attempt.job])
            elif attempt.event_id is None:
                self._outcomes.overtaken(attempt)
            else:
                begun.append(attempt)
        return begun

    def _go_on(self, _: int) -> None:
        if self._stop.is_set():
            raise Stopped

    def _commit(self, attempts: Sequence[Attempt], vectors: Sequence[Vectors], *, generation: int) -> list[_Written]:
        """Write attempts in one transaction; returns those whose job still ran under its claim."""
        taken = self._jobs.take_keys({attempt.job: attempt.passages for attempt in attempts})
        self._indexes.stage(
            [
                _rows_of(attempt, rows, taken[attempt.job])
                for attempt, rows in zip(attempts, vectors, strict=True)
                if attempt.job in taken
            ]
        )
        versions = [self._version(*each, generation=generation) for each in zip(attempts, vectors, strict=True)]
        with self._instruments.together("commit", [attempt.work for attempt in attempts]):
            results = self._jobs.commit_all(versions)
        written = []
        for attempt, rows, result in zip(attempts, vectors, results, strict=True):
            if not result.written:
                self._outcomes.overtaken(attempt)
                continue
            written.append((attempt, rows, result))
        self._files.drop([name for _, _, result in written for name in result.originals])
        return written

    def _publish(self, written: Sequence[_Written]) -> None:
        """Tell the indexes of the chunks that were written and removed."""
        if not written:
            return
        self._indexes.forget(np.concatenate([result.removed_keys for _, _, result in written]))
        self._indexes.publish([_rows_of(attempt, vectors, result.new_keys) for attempt, vectors, result in written])
        live = self._jobs.still_live([(attempt.document.id, attempt.job.version) for attempt, _, _ in written])
        gone = [result.new_keys for attempt, _, result in written if attempt.document.id not in live]
        if gone:  # deleted between the commit and `publish`: that deletion did not find them in the indexes
            self._indexes.forget(np.concatenate(gone))
        for attempt, _, _ in written:
            self._outcomes.indexed(attempt)

    def _version(self, attempt: Attempt, vectors: Vectors, *, generation: int) -> Version:
        def settle(connection: sa.Connection) -> None:
            self._billing.settle_in(connection, attempt, UsageStatus.COMPLETED, tokens=attempt.read_tokens)

        def follow(connection: sa.Connection, keys: Keys, removed: Keys) -> None:
            self._indexes.write_in(connection, _rows_of(attempt, vectors, keys), removed=removed)

        prepared = attempt.ready
        return Version(
            job=attempt.job,
            extraction=prepared.extraction,
            passages=prepared.passages,
            vectors=vectors,
            generation=generation,
            embedding_tokens=prepared.tokens,
            also=settle,
            follow=follow,
        )


def _rows_of(attempt: Attempt, vectors: Vectors, keys: Keys) -> IndexRows:
    return IndexRows(
        keys=keys,
        vectors=vectors,
        tenant_id=attempt.document.tenant_id,
        collection_id=attempt.document.collection_id,
        document_id=attempt.document.id,
        version=attempt.job.version,
        texts=[passage.text for passage in attempt.ready.passages],
    )


def _same(block: EmbeddingBlock, kept: Checkpoint | None) -> Vectors | None:
    """The checkpoint's vectors, when the block's texts have not changed since."""
    return kept.vectors if kept is not None and kept.digest == block.digest else None
