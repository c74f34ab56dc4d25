"""Routes of feedback on answers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.dependencies import Cursor, HistoryDep, Limit, PrincipalDep, TelemetryDep, UsageDep
from app.api.exports import EXPORTS, exported_list
from app.api.schemas.bounds import Id
from app.api.schemas.feedback import FeedbackBody, FeedbackDeletedBody, ListedFeedbackBody, NewFeedback
from app.api.schemas.shape import Page, problems
from app.usage.reports.tables import ReportTable, listed_rows

router = APIRouter(tags=["feedback"])

_COLUMNS = (
    "created_at", "updated_at", "user_id", "user_name", "score", "comment", "question", "conversation_id", "request_id",
)  # fmt: skip
_TABLE = ReportTable("feedback", _COLUMNS, listed_rows)


@router.post(
    "/v1/requests/{id}/feedback",
    status_code=201,
    summary="Rate an answer",
    responses={
        200: {"model": FeedbackBody, "description": "The feedback replaced the caller's earlier one."},
        **problems(404, 422, 503),
    },
)
def give_feedback(
    id: Id,  # noqa: A002 - the contract's name
    body: NewFeedback,
    response: Response,
    history: HistoryDep,
    telemetry: TelemetryDep,
    principal: PrincipalDep,
) -> FeedbackBody:
    """Give feedback on an own answer, or, as administrator, on any of the tenant. Each user's last one counts."""
    said, new = history.feedback.put(id, principal=principal, score=body.score, comment=body.comment)
    telemetry.metrics.count_feedback(said.score)
    if not new:
        response.status_code = 200
    return FeedbackBody.of(said)


@router.delete("/v1/requests/{id}/feedback", summary="Delete feedback", responses=problems(404, 503))
def withdraw_feedback(id: Id, history: HistoryDep, principal: PrincipalDep) -> FeedbackDeletedBody:  # noqa: A002
    """Delete the caller's feedback on an answer, if there is any."""
    history.feedback.withdraw(id, principal=principal)
    return FeedbackDeletedBody(request_id=id)


@router.get(
    "/v1/admin/feedback",
    summary="List feedback",
    response_model=Page[ListedFeedbackBody],
    responses={**EXPORTS, **problems(422, 503)},
)
def list_feedback(
    request: Request,
    history: HistoryDep,
    usage: UsageDep,
    principal: PrincipalDep,
    score_below: Annotated[
        float | None, Query(ge=-1, le=1, description="Only with a lower score; 0: only negative feedback.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Feedback of the tenant's users, newest first; changed feedback keeps its position."""

    def read(most: int, after: str | None) -> tuple[list[ListedFeedbackBody], str | None]:
        found, following = history.feedback.list(
            tenant_id=principal.tenant_id, score_below=score_below, limit=most, cursor=after
        )
        return [ListedFeedbackBody.listed(item) for item in found], following

    return exported_list(request, _TABLE, read, limit=limit, cursor=cursor, end=int(usage.ledger.seconds()))
