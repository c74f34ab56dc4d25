"""Reindexings of collections: every document gets a new version of the same bytes, with a job of its own."""

import time
from collections.abc import Callable

import sqlalchemy as sa

from app.db.document_rows import read_document
from app.db.session import Database
from app.db.tables.documents import document, document_version, job, reindexing
from app.db.versions import Upload, insert_version
from app.errors import NotFound
from app.ids import new_id
from app.types import DocumentStatus, JobStatus, Reindexing

_ORIGINAL = sa.select(document_version.c.object).where(
    document_version.c.document_id == sa.bindparam("its_id"), document_version.c.version == sa.bindparam("its_version")
)


class ReindexingRepository:
    """Reindexings of all tenants and their jobs. Used by `app.documents.reindexing`."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def begin(self, collection_id: str, *, tenant_id: str) -> str:
        """Insert a reindexing without jobs; returns its id."""
        reindex_id = new_id("job")
        with self._database.write() as connection:
            connection.execute(
                sa.insert(reindexing).values(
                    id=reindex_id, tenant_id=tenant_id, collection_id=collection_id, created_at=self._clock()
                )
            )
        return reindex_id

    def queue(
        self,
        reindex_id: str,
        collection_id: str,
        *,
        tenant_id: str,
        user_id: str,
        key_id: str,
        after: str,
        limit: int,
    ) -> str | None:
        """Queue at most `limit` indexed documents of the collection, in one transaction.

        The new version names the original of the one before. Documents with a queued or running job are left out, since
        they are being ingested anyway.

        Returns:
            The last document's id, to pass as `after` to the next call; None when there are no more.
        """
        query = (
            sa.select(document.c.id)
            .where(
                document.c.tenant_id == tenant_id,
                document.c.collection_id == collection_id,
                document.c.status == DocumentStatus.INDEXED,
                document.c.id > after,
            )
            .order_by(document.c.id)
            .limit(limit)
            .with_for_update()
        )
        with self._database.write() as connection:
            ids = connection.execute(query).scalars().all()
            for document_id in ids:
                existing, now = read_document(connection, document_id), self._clock()
                upload = Upload(
                    original=connection.execute(
                        _ORIGINAL, {"its_id": existing.id, "its_version": existing.version}
                    ).scalar_one(),
                    filename=existing.filename,
                    size=existing.bytes,
                    sha256=existing.sha256,
                    user_id=user_id,
                    key_id=key_id,
                )
                insert_version(connection, existing, upload, replace=False, now=now)
                made = read_document(connection, document_id)
                connection.execute(sa.update(job).where(job.c.id == made.job_id).values(reindex_id=reindex_id))
        return ids[-1] if len(ids) == limit else None

    def get(self, reindex_id: str, *, tenant_id: str) -> Reindexing:
        """The reindexing and the number of its jobs by status.

        Raises:
            NotFound: No such reindexing of this tenant.
        """
        mine = reindexing.c.id == reindex_id, reindexing.c.tenant_id == tenant_id
        of_it = job.c.reindex_id == reindex_id
        counts = sa.select(job.c.status, sa.func.count(), sa.func.max(job.c.finished_at)).where(of_it)
        with self._database.read() as connection:
            row = connection.execute(sa.select(reindexing).where(*mine)).one_or_none()
            if row is None:
                raise NotFound("There is no such job.")
            found = connection.execute(counts.group_by(job.c.status)).all()
        jobs = {JobStatus(status): count for status, count, _ in found}
        is_open = JobStatus.QUEUED in jobs or JobStatus.RUNNING in jobs
        last = max((finished for _, _, finished in found if finished is not None), default=row.created_at)
        return Reindexing(
            id=row.id,
            collection_id=row.collection_id,
            jobs=jobs,
            created_at=row.created_at,
            finished_at=None if is_open else last,
        )

    def open_jobs(self, reindex_id: str) -> tuple[str, ...]:
        """The ids of its queued and running jobs."""
        still = job.c.reindex_id == reindex_id, job.c.status.in_((JobStatus.QUEUED, JobStatus.RUNNING))
        with self._database.read() as connection:
            return tuple(connection.execute(sa.select(job.c.id).where(*still).order_by(job.c.id)).scalars())
