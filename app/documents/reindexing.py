"""Reindexes a collection: parses and embeds its documents again, each searchable in its old version until then."""

import contextlib
from collections.abc import Callable

from app.db.collections import CollectionRepository
from app.db.jobs import JobRepository
from app.db.reindexing import ReindexingRepository
from app.documents.intake import Intake
from app.errors import Conflict, NotFound
from app.types import Principal, Reindexing

_BATCH = 50  # documents queued in one transaction


class Reindexer:
    """Begins, shows and cancels reindexings.

    Example:
        >>> started = reindexer.begin("col_1", principal=admin)
        >>> reindexer.get(started.id, principal=admin).finished_at
    """

    def __init__(
        self,
        *,
        reindexings: ReindexingRepository,
        collections: CollectionRepository,
        jobs: JobRepository,
        intake: Intake,
        wake: Callable[[], None],
    ) -> None:
        self._reindexings = reindexings
        self._collections = collections
        self._jobs = jobs
        self._intake = intake
        self._wake = wake

    def begin(self, collection_id: str, *, principal: Principal) -> Reindexing:
        """Queue every indexed document of a collection to be extracted, chunked and embedded again.

        Each gets a new version with the same original, so that earlier citations keep the text they quote. After a
        crash some documents are queued and others are not; call it again to queue all.

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
            )
            self._wake()
        return self._reindexings.get(reindex_id, tenant_id=principal.tenant_id)

    def get(self, reindex_id: str, *, principal: Principal) -> Reindexing:
        """The reindexing and the number of its jobs by status.

        Raises:
            NotFound: No such reindexing, or the key may not access its collection.
        """
        found = self._reindexings.get(reindex_id, tenant_id=principal.tenant_id)
        if principal.collections is not None and found.collection_id not in principal.collections:
            raise NotFound("There is no such job.")
        return found

    def cancel(self, reindex_id: str, *, principal: Principal) -> Reindexing:
        """Cancel its queued and running jobs; documents already indexed keep their new version.

        Raises:
            NotFound: As `get`.
            Conflict: It has ended.
        """
        if self.get(reindex_id, principal=principal).finished_at is not None:
            raise Conflict("Only a job that waits or runs can be cancelled; this one has ended.")
        for job_id in self._reindexings.open_jobs(reindex_id):
            with contextlib.suppress(Conflict, NotFound):  # it has just ended, or its document was deleted
                self._intake.cancel(job_id, principal=principal, jobs=self._jobs)
        return self.get(reindex_id, principal=principal)
