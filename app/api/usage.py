"""Routes of usage: the caller's own, and the reports for administrators."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from app.api.dependencies import AccessDep, DatabaseDep, PrincipalDep, RequestId, SettingsDep, UsageDep
from app.api.exports import EXPORTS, exported
from app.api.query_parameters import listed, refuse_unknown
from app.api.schemas.bounds import Id, Listed
from app.api.schemas.budgets import OwnBudget
from app.api.schemas.shape import problems
from app.api.schemas.usage import (
    CompletionsResult,
    CostsResult,
    DocumentsPage,
    EmbeddingsResult,
    JudgeResult,
    OwnUsage,
    RebuildBody,
    RebuiltBody,
    ReportPage,
    RerankResult,
    UsageResult,
)
from app.usage.reports import tables as report_rows
from app.usage.reports.documents_report import MOST, DocumentsQuery
from app.usage.reports.reports import ReportQuery
from app.usage.rollups.buckets import LATEST, LIMITS, BucketWidth

router = APIRouter(tags=["usage"])

_MOST_BUCKETS = max(most for _, most in LIMITS.values())
_SINGLE = ("start_time", "end_time", "bucket_width", "tz", "limit", "page")


@router.get("/v1/usage", summary="Read your own usage", responses=problems())
def own_usage(usage: UsageDep, settings: SettingsDep, principal: PrincipalDep) -> OwnUsage:
    """Tokens of the caller's user today, this month and in total."""
    own = usage.reports.own(tenant_id=principal.tenant_id, user_id=principal.user_id)
    budgets = [OwnBudget.of(budget, currency=settings.currency) for budget in usage.budgets.of(principal)]
    return OwnUsage.model_validate({**own, "budgets": budgets})


def report_query(
    request: Request,
    principal: PrincipalDep,
    start_time: Annotated[int, Query(ge=0, le=LATEST, description="Unix seconds, inclusive.")],
    end_time: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Unix seconds, exclusive; default: now.")
    ] = None,
    bucket_width: Annotated[
        BucketWidth, Query(description="Width of a bucket; days and months are those of `tz`.")
    ] = "1d",
    tz: Annotated[Id | None, Query(description="IANA time zone; default: the reporting zone.")] = None,
    group_by: Annotated[
        Listed | None,
        Query(
            description="Any of `tenant_id`, `project_id`, `user_id`, `api_key_id`, `model`, `operation`, `status`; "
            "costs also by `line_item` or `document_id`. Lists may be repeated, comma-separated, or written "
            "`group_by[]`."
        ),
    ] = None,
    project_ids: Annotated[Listed | None, Query(description="Only these collections.")] = None,
    user_ids: Annotated[Listed | None, Query(description="Only these users.")] = None,
    api_key_ids: Annotated[Listed | None, Query(description="Only these keys.")] = None,
    models: Annotated[Listed | None, Query(description="Only these models.")] = None,
    statuses: Annotated[Listed | None, Query(description="Only calls with these statuses, or `adjustment`.")] = None,
    limit: Annotated[
        int | None,
        Query(
            ge=1,
            le=_MOST_BUCKETS,
            description="Buckets on a page; at most 672 quarter hours, 168 hours, 31 days (180 of costs) or 36 months.",
        ),
    ] = None,
    page: Annotated[str | None, Query(max_length=4096, description="`next_page` of the previous page.")] = None,
) -> ReportQuery:
    """The query of a report, from its parameters.

    Raises:
        InvalidRequest: A parameter is unknown.
    """
    given = {
        "group_by": group_by,
        "project_ids": project_ids,
        "user_ids": user_ids,
        "api_key_ids": api_key_ids,
        "models": models,
        "statuses": statuses,
    }
    refuse_unknown(request, lists=given, single=_SINGLE)
    lists = {name: listed(request, name, plain) for name, plain in given.items()}
    grouped = lists.pop("group_by")
    return ReportQuery(
        tenant_id=principal.tenant_id,
        start=start_time,
        end=end_time,
        bucket_width=bucket_width,
        tz=tz,
        group_by=tuple(dict.fromkeys(grouped)),
        limit=limit,
        page=page,
        **{name: values or None for name, values in lists.items()},
    )


ReportQueryDep = Annotated[ReportQuery, Depends(report_query)]


@router.get(
    "/v1/admin/usage",
    summary="Answers and the tokens of all models over time",
    response_model=ReportPage[UsageResult],
    responses={**EXPORTS, **problems(422)},
)
def every_call(request: Request, query: ReportQueryDep, usage: UsageDep) -> Response:
    """Every model call, in buckets by its time of settlement, and the number of answers; a final bucket never changes.

    The reports of completions, embeddings, reranking and judging are parts of this one.
    """
    return exported(request, usage.ledger, report_rows.CALLS, usage.reports.calls, query)


@router.get(
    "/v1/admin/usage/completions",
    summary="Completion tokens over time",
    response_model=ReportPage[CompletionsResult],
    responses={**EXPORTS, **problems(422)},
)
def completions(request: Request, query: ReportQueryDep, usage: UsageDep) -> Response:
    """Calls of language models, in buckets by their time of settlement; a final bucket never changes."""
    return exported(request, usage.ledger, report_rows.COMPLETIONS, usage.reports.completions, query)


@router.get(
    "/v1/admin/usage/embeddings",
    summary="Embedded tokens over time",
    response_model=ReportPage[EmbeddingsResult],
    responses={**EXPORTS, **problems(422)},
)
def embeddings(request: Request, query: ReportQueryDep, usage: UsageDep) -> Response:
    """Embedded queries and documents; `group_by=operation` separates them."""
    return exported(request, usage.ledger, report_rows.EMBEDDINGS, usage.reports.embeddings, query)


@router.get(
    "/v1/admin/usage/rerank",
    summary="Reranked tokens over time",
    response_model=ReportPage[RerankResult],
    responses={**EXPORTS, **problems(422)},
)
def rerank(request: Request, query: ReportQueryDep, usage: UsageDep) -> Response:
    """Calls of the reranker."""
    return exported(request, usage.ledger, report_rows.RERANK, usage.reports.rerank, query)


@router.get(
    "/v1/admin/usage/judge",
    summary="Reader and verifier tokens over time",
    response_model=ReportPage[JudgeResult],
    responses={**EXPORTS, **problems(422)},
)
def judge(request: Request, query: ReportQueryDep, usage: UsageDep) -> Response:
    """Calls of models that read passages to find, select or verify answers."""
    return exported(request, usage.ledger, report_rows.JUDGE, usage.reports.judge, query)


@router.get(
    "/v1/admin/costs",
    summary="Costs over time",
    response_model=ReportPage[CostsResult],
    responses={**EXPORTS, **problems(422)},
)
def costs(request: Request, query: ReportQueryDep, usage: UsageDep) -> Response:
    """Costs of all calls, including adjustments; optionally by line item or document."""
    return exported(request, usage.ledger, report_rows.COSTS, usage.reports.costs, query)


@router.get(
    "/v1/admin/usage/documents",
    summary="Tokens and costs by document",
    response_model=DocumentsPage,
    responses={**EXPORTS, **problems(422)},
)
def documents(
    request: Request,
    usage: UsageDep,
    principal: PrincipalDep,
    start_time: Annotated[int, Query(ge=0, le=LATEST, description="Unix seconds, inclusive.")],
    end_time: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Unix seconds, exclusive; default: now.")
    ] = None,
    order_by: Annotated[
        Literal["cost", "num_retrieved", "num_cited", "context_tokens", "ingest_tokens"],
        Query(description="Sort key."),
    ] = "cost",
    order: Annotated[Literal["desc", "asc"], Query(description="Descending or ascending.")] = "desc",
    document_ids: Annotated[Listed | None, Query(description="Only these documents.")] = None,
    cited: Annotated[
        bool | None, Query(description="`true`: only cited documents; `false`: only documents that no answer cites.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Documents on a page, at most 1000.")] = 100,
    page: Annotated[str | None, Query(max_length=4096, description="`next_page` of the previous page.")] = None,
) -> Response:
    """Every document of the tenant, used or not, and deleted documents that caused costs.

    Citations are counted when an answer is complete. The counts are lower bounds: updates that the database could not
    store are only logged.
    """
    single = ("start_time", "end_time", "order_by", "order", "cited", "limit", "page")
    refuse_unknown(request, lists=("document_ids",), single=single)
    chosen = listed(request, "document_ids", document_ids)
    query = DocumentsQuery(
        tenant_id=principal.tenant_id,
        start=start_time,
        end=end_time,
        order_by=order_by,
        ascending=order == "asc",
        document_ids=tuple(chosen) or None,
        cited=cited,
        limit=limit,
        page=page,
    )
    return exported(request, usage.ledger, report_rows.DOCUMENTS, usage.reports.documents, query)


@router.post("/v1/admin/usage/rebuild", summary="Rebuild rollups", responses=problems(404, 422, 503))
def rebuild(
    body: RebuildBody,
    access: AccessDep,
    usage: UsageDep,
    database: DatabaseDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> RebuiltBody:
    """Compute the rollups of a range again from the ledger, for one tenant. Calls may continue meanwhile."""
    tenant_id = access.tenants.get(body.tenant_id or principal.tenant_id).id
    days = usage.rollups.rebuild(tenant_id=tenant_id, start=body.start_time, end=body.end_time)
    detail = {"start_time": body.start_time, "end_time": body.end_time, "days": days}
    with database.write() as connection:
        access.audit.record_in(
            connection, principal, "usage.rebuilt", body.tenant_id or "usage", detail, request_id=request_id
        )
    return RebuiltBody.model_validate(detail)
