"""Reading a collection's documents again, while the versions there are stay visible until each swap."""

import contextlib
from collections.abc import Callable

from app.db.collections import CollectionRepository
from app.db.jobs import JobRepository
from app.db.reindexing import ReindexingRepository
from app.documents.intake import Intake
from app.documents.originals import FileStore
from app.errors import Conflict, NotFound
from app.types import Document, Principal, Reindexing

_BATCH = 50  # documents queued in one transaction


class Reindexer:
    """Begins reindexings, shows and cancels them."""

    def __init__(
        self,
        *,
        reindexings: ReindexingRepository,
        collections: CollectionRepository,
        jobs: JobRepository,
        files: FileStore,
        intake: Intake,
        wake: Callable[[], None],
    ) -> None:
        self._reindexings = reindexings
        self._collections = collections
        self._jobs = jobs
        self._files = files
        self._intake = intake
        self._wake = wake

    def begin(self, collection_id: str, *, principal: Principal) -> Reindexing:
        """Queue every indexed document of a collection to be extracted, chunked and embedded again.

        Each gets a new version of the same bytes, so that earlier citations keep the text they were made from.
        A crash on the way leaves those queued that were: asking again queues all.

        Raises:
            NotFound: No such collection.
        """
        found = self._collections.get(collection_id, tenant_id=principal.tenant_id, allowed=principal.collections)
        reindex_id = self._reindexings.begin(found.id, tenant_id=principal.tenant_id)
        after: str | None = ""
        while after is not None:
            after = self._reindexings.queue(
                reindex_id,
                found.id,
                tenant_id=principal.tenant_id,
                user_id=principal.user_id,
                key_id=principal.key_id,
                after=after,
                limit=_BATCH,
                before_commit=self._repeat,
            )
            self._wake()
        return self._reindexings.get(reindex_id, tenant_id=principal.tenant_id)

    def get(self, reindex_id: str, *, principal: Principal) -> Reindexing:
        """Where it stands.

        Raises:
            NotFound: No such reindexing, or of a collection the caller's key does not reach.
        """
        found = self._reindexings.get(reindex_id, tenant_id=principal.tenant_id)
        if principal.collections is not None and found.collection_id not in principal.collections:
            raise NotFound("There is no such job.")
        return found

    def cancel(self, reindex_id: str, *, principal: Principal) -> Reindexing:
        """Cancel its jobs that wait or run; what was swapped stays.

        Raises:
            NotFound: As `get`.
            Conflict: It has ended.
        """
        if self.get(reindex_id, principal=principal).finished_at is not None:
            raise Conflict("Only a job that waits or runs can be cancelled; this one has ended.")
        for job_id in self._reindexings.open_jobs(reindex_id):
            with contextlib.suppress(Conflict, NotFound):  # it ended in this moment, or its document is gone
                self._intake.cancel(job_id, principal=principal, jobs=self._jobs)
        return self.get(reindex_id, principal=principal)

    def _repeat(self, made: Document) -> None:
        with contextlib.suppress(FileNotFoundError):  # the job will say that the original is missing
            self._files.repeat(made.id, version=made.version, of=made.version - 1)
