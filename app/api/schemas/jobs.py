"""Bodies of ingestion jobs."""

from typing import Literal

from pydantic import Field

from app.api.schemas.documents import DocumentError
from app.api.schemas.shape import ResponseBody, rfc3339
from app.types import Job, JobStatus, Reindexing


class JobBody(ResponseBody):
    """An ingestion job."""

    id: str = Field(description="The job's id.", examples=["job_01k9"])
    object: Literal["job"] = Field(default="job", description="Always `job`.")
    kind: Literal["ingest"] = Field(default="ingest", description="Kind of job.")
    status: str = Field(description="queued, running, done, failed or cancelled.", examples=["done"])
    document_id: str = Field(description="The document to ingest.")
    version: int = Field(description="The document version that it creates.")
    attempts: int = Field(description="Number of attempts.", examples=[1])
    error: DocumentError | None = Field(description="Why it failed, or why the last attempt did.")
    next_attempt_at: str | None = Field(
        description="Time of the next attempt, RFC 3339 UTC; null unless it waits for a retry."
    )
    created_at: str = Field(description="RFC 3339 UTC.")
    started_at: str | None = Field(description="RFC 3339 UTC.")
    finished_at: str | None = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, job: Job) -> "JobBody":
        """The body for a job."""
        return cls(
            id=job.id,
            status=job.status,
            document_id=job.document_id,
            version=job.version,
            attempts=job.attempts,
            error=DocumentError(code=job.error_code, detail=job.error_detail or "") if job.error_code else None,
            next_attempt_at=rfc3339(job.next_attempt_at) if job.next_attempt_at is not None else None,
            created_at=rfc3339(job.created_at),
            started_at=rfc3339(job.started_at) if job.started_at is not None else None,
            finished_at=rfc3339(job.finished_at) if job.finished_at is not None else None,
        )


class ReindexBody(ResponseBody):
    """A reindexing: one job for each document of a collection."""

    id: str = Field(description="The job's id.", examples=["job_01k9"])
    object: Literal["job"] = Field(default="job", description="Always `job`.")
    kind: Literal["reindex"] = Field(default="reindex", description="Kind of job.")
    status: str = Field(description="running, done, failed or cancelled.", examples=["running"])
    collection_id: str = Field(description="The collection that is reindexed.")
    documents: int = Field(description="Number of documents.", examples=[120])
    documents_done: int = Field(description="Number of documents whose new version is searched.", examples=[80])
    documents_failed: int = Field(
        description="Number of failed documents, which are searched in their old version.", examples=[0]
    )
    documents_cancelled: int = Field(
        description="Number of documents that were cancelled or replaced by an upload.", examples=[0]
    )
    created_at: str = Field(description="RFC 3339 UTC.")
    finished_at: str | None = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, reindexing: Reindexing) -> "ReindexBody":
        """The body for a reindexing."""
        jobs = reindexing.jobs
        return cls(
            id=reindexing.id,
            status=reindexing.status,
            collection_id=reindexing.collection_id,
            documents=sum(jobs.values()),
            documents_done=jobs.get(JobStatus.DONE, 0),
            documents_failed=jobs.get(JobStatus.FAILED, 0),
            documents_cancelled=jobs.get(JobStatus.CANCELLED, 0),
            created_at=rfc3339(reindexing.created_at),
            finished_at=rfc3339(reindexing.finished_at) if reindexing.finished_at is not None else None,
        )
