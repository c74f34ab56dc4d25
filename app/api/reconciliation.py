"""Bodies of reconciliation."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.api.dependencies import AccessDep, CorpusDep, DatabaseDep, PrincipalDep, RequestId, ServingDep
from app.api.schemas.shape import RequestBody, ResponseBody, problems
from app.documents.consistency import Finding, Findings, Kind


class ReconcileRequest(RequestBody):
    """Whether to mend."""

    repair: bool = Field(default=False, description="Mend what can be made again from the database.")


class FindingBody(ResponseBody):
    """Things of one kind that are wrong."""

    code: Kind = Field(description="What is wrong.", examples=["stray_originals"])
    count: int = Field(description="How many there are.", examples=[2])
    detail: str = Field(description="The same in a sentence, and what to do where a repair does not help.")
    mendable: bool = Field(description="Whether a repair mends it.")
    mended: bool = Field(description="Whether this repair did.")

    @classmethod
    def of(cls, finding: Finding) -> "FindingBody":
        """The body for a finding."""
        return cls(
            code=finding.kind,
            count=finding.count,
            detail=finding.sentence,
            mendable=finding.mendable,
            mended=finding.mended,
        )


class FindingsBody(ResponseBody):
    """What a reconciliation found, over all tenants."""

    object: Literal["reconciliation"] = Field(default="reconciliation", description="Always `reconciliation`.")
    consistent: bool = Field(description="Whether nothing is wrong, or nothing any more.")
    versions: int = Field(description="Document versions looked at.", examples=[120])
    chunks: int = Field(description="Visible chunks looked at.", examples=[4031])
    findings: list[FindingBody] = Field(description="What was wrong, by kind; empty when all is well.")

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


@router.post("/reconcile", summary="Compare database, files and index", responses=problems(409, 422, 503))
def reconcile(
    body: ReconcileRequest,
    corpus: CorpusDep,
    access: AccessDep,
    serving: ServingDep,
    database: DatabaseDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> FindingsBody:
    """Reads all text: minutes on a large installation. The server does the same every night, with repair."""
    index = serving.models.index if serving.models is not None else None
    found = corpus.reconciler.run(index, repair=body.repair)
    if body.repair:
        mended = {finding.kind.value: finding.count for finding in found.findings if finding.mended}
        with database.write() as connection:
            access.audit.record_in(
                connection, principal, "reconciliation.repaired", "installation", mended, request_id=request_id
            )
    return FindingsBody.of(found)
