"""Routes of ingestion jobs."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.dependencies import CorpusDep, Cursor, Limit, PrincipalDep, visible_document
from app.api.schemas.bounds import Id
from app.api.schemas.jobs import JobBody, ReindexBody
from app.api.schemas.shape import Page, problems
from app.errors import NotFound
from app.types import JobStatus

router = APIRouter(tags=["jobs"])


@router.get("/v1/jobs", summary="List ingestion jobs", responses=problems(404, 422))
def list_jobs(
    corpus: CorpusDep,
    principal: PrincipalDep,
    status: Annotated[JobStatus | None, Query(description="Only jobs with this status.")] = None,
    document_id: Annotated[Id | None, Query(description="Only jobs of this document.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[JobBody]:
    """Jobs of existing documents, newest first."""
    if document_id is not None:
        visible_document(corpus, principal, document_id)
    jobs, next_cursor = corpus.jobs.list(
        tenant_id=principal.tenant_id,
        collections=principal.collections,
        status=status,
        document_id=document_id,
        limit=limit,
        cursor=cursor,
    )
    return Page(data=[JobBody.of(job) for job in jobs], has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get("/v1/jobs/{job_id}", summary="Read an ingestion job", responses=problems(404))
def read_job(job_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> JobBody | ReindexBody:
    """A job that ingests a document or reindexes a collection, with its status."""
    try:
        job = corpus.jobs.get(job_id, tenant_id=principal.tenant_id)
    except NotFound:
        return ReindexBody.of(corpus.reindexer.get(job_id, principal=principal))
    visible_document(corpus, principal, job.document_id)
    return JobBody.of(job)


@router.post("/v1/jobs/{job_id}/cancel", summary="Cancel an ingestion job", responses=problems(404, 409))
def cancel_job(job_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> JobBody | ReindexBody:
    """Cancel a waiting or running job. Its document keeps the version that is searched.

    A document without an indexed version fails with the code `cancelled`, and can be retried. Tokens embedded so far
    are billed. A job that has ended is not changed (409). Cancelling a reindexing cancels its remaining jobs.
    """
    try:
        job = corpus.jobs.get(job_id, tenant_id=principal.tenant_id)
    except NotFound:
        return ReindexBody.of(corpus.reindexer.cancel(job_id, principal=principal))
    visible_document(corpus, principal, job.document_id)
    return JobBody.of(corpus.intake.cancel(job_id, principal=principal, jobs=corpus.jobs))
