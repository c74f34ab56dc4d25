"""Reconciliation of database, original files and index: its bodies and route."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.api.dependencies import AccessDep, CorpusDep, DatabaseDep, PrincipalDep, RequestId, ServingDep
from app.api.schemas.shape import RequestBody, ResponseBody, problems
from app.documents.consistency import Findings, Inconsistency, InconsistencyCount


class ReconcileRequest(RequestBody):
    """Options of a reconciliation."""

    repair: bool = Field(default=False, description="Repair what can be rebuilt from the database.")


class FindingBody(ResponseBody):
    """Inconsistencies of one kind."""

    code: Inconsistency = Field(description="Kind of inconsistency.", examples=["stray_originals"])
    count: int = Field(description="Number of inconsistencies.", examples=[2])
    detail: str = Field(description="Description in one sentence, with advice when a repair does not help.")
    mendable: bool = Field(description="Whether a repair fixes it.")
    mended: bool = Field(description="Whether this repair has fixed it.")

    @classmethod
    def of(cls, finding: InconsistencyCount) -> "FindingBody":
        """The body for a finding."""
        return cls(
            code=finding.kind,
            count=finding.count,
            detail=finding.sentence,
            mendable=finding.mendable,
            mended=finding.mended,
        )


class FindingsBody(ResponseBody):
    """The result of a reconciliation, over all tenants."""

    object: Literal["reconciliation"] = Field(default="reconciliation", description="Always `reconciliation`.")
    consistent: bool = Field(description="Whether there is no inconsistency, or none after the repair.")
    versions: int = Field(description="Number of document versions checked.", examples=[120])
    chunks: int = Field(description="Number of searchable chunks checked.", examples=[4031])
    findings: list[FindingBody] = Field(description="Inconsistencies by kind; empty without any.")

    @classmethod
    def of(cls, found: Findings) -> "FindingsBody":
        """The body for findings."""
        return cls(
            consistent=not found.open,
            versions=found.versions,
            chunks=found.chunks,
            findings=[FindingBody.of(finding) for finding in found.findings],
        )


router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.post("/reconcile", summary="Reconcile database, files and index", responses=problems(409, 422, 503))
def reconcile(
    body: ReconcileRequest,
    corpus: CorpusDep,
    access: AccessDep,
    serving: ServingDep,
    database: DatabaseDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> FindingsBody:
    """Compare all text and vectors, which takes minutes on large installations. The server also repairs every night."""
    indexes = serving.models.indexes if serving.models is not None else None
    found = corpus.reconciler.run(indexes, repair=body.repair)
    if body.repair:
        mended = {finding.kind.value: finding.count for finding in found.findings if finding.mended}
        with database.write() as connection:
            access.audit.record_in(
                connection, principal, "reconciliation.repaired", "installation", mended, request_id=request_id
            )
    return FindingsBody.of(found)
