"""Maps domain errors to HTTP statuses and RFC 9457 problem documents, in one table."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException

from app import errors as app_errors
from app.access.routes import speaks_anthropic, speaks_openai
from app.answering.answers.answer import Answer
from app.answering.formats.answer_formats import SCHEMA_FIELDS
from app.api.field_problems import FieldProblems, cut
from app.api.root_path import route_path
from app.disk import disk_refusal
from app.telemetry.logs import logger
from app.telemetry.timing import note_problem
from app.usage.rollups.sums import decimal
from generation import errors as generation_errors
from generation.types import FinishReason
from ingestion import errors as ingestion_errors
from retrieval import errors as retrieval_errors

PROBLEM = "application/problem+json"
_DETAIL_CHARS, _PARAM_CHARS = 1_000, 100  # both may name what was sent


@dataclass(frozen=True, slots=True)
class _Mapped:
    status: HTTPStatus
    slug: str
    retry_after_s: int | None = None


_TABLE: dict[type[Exception], _Mapped] = {
    app_errors.NotFound: _Mapped(HTTPStatus.NOT_FOUND, "not-found"),
    app_errors.InvitationNotValid: _Mapped(HTTPStatus.NOT_FOUND, "invitation-not-valid"),
    app_errors.Conflict: _Mapped(HTTPStatus.CONFLICT, "conflict"),
    app_errors.RequestRunning: _Mapped(HTTPStatus.CONFLICT, "request-running", 1),
    app_errors.AnswerNotKept: _Mapped(HTTPStatus.CONFLICT, "answer-not-kept"),
    app_errors.TermsNotAccepted: _Mapped(HTTPStatus.CONFLICT, "terms-not-accepted"),
    app_errors.IdempotencyKeyReused: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency-key-reused"),
    app_errors.UrlNotAllowed: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "url-not-allowed"),
    app_errors.UrlNotFetched: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "url-not-fetched"),
    app_errors.Unauthenticated: _Mapped(HTTPStatus.UNAUTHORIZED, "unauthenticated"),
    app_errors.CrossSiteRequest: _Mapped(HTTPStatus.FORBIDDEN, "csrf"),
    app_errors.ProviderUnavailable: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "provider-unavailable", 10),
    app_errors.Forbidden: _Mapped(HTTPStatus.FORBIDDEN, "forbidden"),
    app_errors.UnsupportedParameter: _Mapped(HTTPStatus.BAD_REQUEST, "unsupported-parameter"),
    app_errors.InvalidRequest: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request"),
    app_errors.MalformedRequest: _Mapped(HTTPStatus.BAD_REQUEST, "malformed-request"),
    app_errors.TooLarge: _Mapped(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large"),
    app_errors.TooSlow: _Mapped(HTTPStatus.REQUEST_TIMEOUT, "request-timeout"),
    app_errors.StorageFull: _Mapped(HTTPStatus.INSUFFICIENT_STORAGE, "insufficient-storage", 30),
    app_errors.StoreUnavailable: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "store-unavailable", 2),
    app_errors.BudgetExceeded: _Mapped(HTTPStatus.TOO_MANY_REQUESTS, "budget-exceeded"),
    app_errors.RateLimited: _Mapped(HTTPStatus.TOO_MANY_REQUESTS, "rate-limited"),
    app_errors.ServerFull: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "server-full", 1),
    app_errors.DeadlinePassed: _Mapped(HTTPStatus.GATEWAY_TIMEOUT, "deadline"),
    app_errors.SetupError: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", 30),
    app_errors.ModelsLoading: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", 5),
    app_errors.ServerShutdown: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "server-shutdown", 30),
    ingestion_errors.UnsupportedFormat: _Mapped(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-format"),
    ingestion_errors.IngestionError: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "unreadable-document"),
    retrieval_errors.InvalidFilter: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-filter"),
    retrieval_errors.RetrievalError: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "retrieval-unavailable", 5),
    generation_errors.ConstraintInvalid: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-response-format"),
    generation_errors.ContextLengthExceeded: _Mapped(HTTPStatus.UNPROCESSABLE_ENTITY, "context-length-exceeded"),
    generation_errors.EngineFull: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "server-full", 1),
    generation_errors.EngineOutOfMemory: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "engine-out-of-memory", 5),
    generation_errors.EngineStopped: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "engine-stopped", 5),
    generation_errors.GenerationError: _Mapped(HTTPStatus.SERVICE_UNAVAILABLE, "generation-failed", 5),
}
_SLUGS = {404: "not-found", 405: "method-not-allowed", 408: "request-timeout", 413: "too-large"}


def problem(
    status: HTTPStatus,
    slug: str,
    detail: str,
    request_id: str,
    *,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A problem document (RFC 9457); `instance` is the request id."""
    return {
        "type": f"urn:footnote:problem:{slug}",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "instance": request_id,
        **(extra or {}),
    }


def problem_of(
    error: Exception, request_id: str, *, path: str = "", openid: bool = False
) -> tuple[HTTPStatus, dict[str, object], dict[str, str]]:
    """Status, body and headers for an error; `openid` is whether users sign in through an OpenID provider.

    `path` is the route's, by which a schema that cannot be enforced is named.

    An error of the disk becomes a 507 or 503. Unexpected errors become a 500. Neither body shows the cause, which is
    logged.
    """
    if (refusal := disk_refusal(error)) is not None:
        logger().error("disk.failed", request_id=request_id, error=type(error).__name__, exc_info=error)
        error = refusal
    mapped = next((_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE), None)
    if mapped is None:
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        note_problem("internal-error")
        logger().error("request.failed", request_id=request_id, error=type(error).__name__, exc_info=error)
        return status, problem(status, "internal-error", "Something went wrong on our side.", request_id), {}
    note_problem(mapped.slug, refused_by=error.unit if isinstance(error, app_errors.BudgetExceeded) else None)
    extra: dict[str, object] = {}
    headers: dict[str, str] = {}
    if isinstance(error, generation_errors.ContextLengthExceeded):
        extra = {
            "prompt_tokens": error.prompt_tokens,
            "max_output_tokens": error.max_tokens,
            "context_window": error.context_window,
        }
    if isinstance(error, generation_errors.ConstraintInvalid):
        extra = {"param": SCHEMA_FIELDS.get(path.removeprefix("/v1/").replace("/", "."))}
    if isinstance(error, app_errors.InvalidRequest) and error.param:
        extra = {"param": cut(error.param, _PARAM_CHARS)}
    if isinstance(error, ingestion_errors.IngestionError):
        extra = {"code": error.code}
    if isinstance(error, app_errors.BudgetExceeded):
        extra, headers = _budget_members(error)
    if isinstance(error, app_errors.RateLimited):
        extra = {
            "limit_name": error.name,
            "limit": error.limit,
            "window_s": error.window_s,
            "retry_after_s": error.retry_after_s,
        }
    retry_after_s = mapped.retry_after_s
    if isinstance(error, app_errors.RateLimited | app_errors.ServerFull | generation_errors.EngineFull):
        retry_after_s = error.retry_after_s  # computed from the current load
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    if mapped.status is HTTPStatus.UNAUTHORIZED:
        extra, headers["WWW-Authenticate"] = {"openid": openid}, "Bearer"
    detail = cut(str(error), _DETAIL_CHARS)
    return mapped.status, problem(mapped.status, mapped.slug, detail, request_id, extra=extra), headers


def _budget_members(error: app_errors.BudgetExceeded) -> tuple[dict[str, object], dict[str, str]]:
    """The budget's state for the problem document, and the headers that OpenAI's clients read, in seconds."""
    amounts = {"limit": error.limit, "used": error.used, "reserved": error.reserved}
    money = error.unit == "cost"
    members: dict[str, object] = {
        "budget_id": error.budget_id,
        "unit": error.unit,
        **{name: decimal(amount) if money else amount for name, amount in amounts.items()},
        "reset_at": error.reset_at,
    }
    headers: dict[str, str] = {}
    if not money:
        headers["x-ratelimit-remaining-tokens"] = str(max(0, error.limit - error.used - error.reserved))
    if error.wait_s is not None:
        seconds = max(1, math.ceil(error.wait_s))
        headers["Retry-After"] = str(seconds)
        if not money:
            headers["x-ratelimit-reset-tokens"] = f"{seconds}s"
    return members, headers


def failure_of(answer: Answer) -> Exception | None:
    """The error of a failed answer; None for an answer that did not fail."""
    if answer.error is None:
        return None
    late = answer.finish_reason == FinishReason.DEADLINE
    return app_errors.DeadlinePassed() if late else generation_errors.failure(answer.error)


def problem_response(
    status: HTTPStatus, body: dict[str, object], headers: Mapping[str, str], *, path: str
) -> JSONResponse:
    """The response; on routes of OpenAI's or Anthropic's protocol the body also has the protocol's `error` member."""
    if speaks_openai(path):
        body = {**body, "error": openai_error(body)}
    elif speaks_anthropic(path):
        body = {**body, "error": anthropic_error(body)}
    return JSONResponse(body, status_code=status.value, headers=dict(headers), media_type=PROBLEM)


def anthropic_error(body: Mapping[str, object]) -> dict[str, object]:
    """Anthropic's `error` object from a problem document."""
    status = body["status"]
    assert isinstance(status, int), "problem() wrote it"
    known = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        503: "overloaded_error",
        504: "timeout_error",
    }
    return {
        "type": known.get(status, "invalid_request_error" if status < 500 else "api_error"),
        "message": body["detail"],
    }


def openai_error(body: Mapping[str, object]) -> dict[str, object]:
    """OpenAI's `error` object from a problem document."""
    status = body["status"]
    assert isinstance(status, int), "problem() wrote it"
    slug = str(body["type"]).rsplit(":", 1)[-1]
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        status, "invalid_request_error" if status < 500 else "server_error"
    )
    return {
        "message": body["detail"],
        "type": kind,
        "code": slug.replace("-", "_"),
        "param": body.get("param"),
    }


def install_error_handlers(app: FastAPI) -> None:
    """Register the handlers that answer every failure with a problem document."""

    async def on_error(request: Request, error: Exception) -> JSONResponse:
        openid = request.app.state.footnote.access.openid is not None
        path = route_path(request.scope)
        status, body, headers = problem_of(error, request_id_of(request), path=path, openid=openid)
        return problem_response(status, body, headers, path=path)

    async def on_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException), "registered for HTTPException"
        status = HTTPStatus(error.status_code)
        slug = _SLUGS.get(status.value, "bad-request")
        note_problem(slug)
        detail = _nothing_at(request) if status is HTTPStatus.NOT_FOUND else str(error.detail)
        headers = dict(error.headers or {})
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_methods_at(request, route_path(request.scope)))
        body = problem(status, slug, detail, request_id_of(request))
        return problem_response(status, body, headers, path=route_path(request.scope))

    async def on_validation(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError), "registered for RequestValidationError"
        return _validation_response(request, error)

    for kind in (
        app_errors.AppError,
        ingestion_errors.IngestionError,
        retrieval_errors.RetrievalError,
        generation_errors.GenerationError,
    ):
        app.add_exception_handler(kind, on_error)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)


def request_id_of(request: Request) -> str:
    """The id that the request gate gave this request."""
    return str(request.scope.get("state", {}).get("request_id", ""))


def _nothing_at(request: Request) -> str:
    """The reason for a 404 of the router; a slash too many is named, because there are no redirects."""
    path = route_path(request.scope)
    if path != path.rstrip("/") and _methods_at(request, path.rstrip("/")):
        return "There is nothing at this address. Remove the slash at its end."
    return "There is nothing at this address."


def _methods_at(request: Request, path: str) -> list[str]:
    """All methods of the address, for `Allow` (RFC 9110, section 10.2.1); Starlette lists those of one route only."""
    found = [
        route for route in iter_route_contexts(request.app.routes) if route.methods and route.path_regex.match(path)
    ]
    closest = min((str(route.path).count("{") for route in found), default=0)  # /documents/delete names no document
    return sorted({name for route in found if str(route.path).count("{") == closest for name in route.methods or ()})


def _validation_response(request: Request, error: RequestValidationError) -> JSONResponse:
    """422 with one sentence for each invalid field; the value that was sent is never repeated."""
    found = FieldProblems.of(error.errors())
    status, param = HTTPStatus.UNPROCESSABLE_ENTITY, found.param
    if found.broken:
        detail, slug = "The body is not valid JSON.", "invalid-json"
    else:
        detail, slug = found.detail, "invalid-request"
    path = route_path(request.scope)
    if found.unsupported is not None and (speaks_openai(path) or speaks_anthropic(path)):
        # Protocols of others: an unknown parameter is refused by name, never ignored.
        status, slug = HTTPStatus.BAD_REQUEST, "unsupported-parameter"
        param, detail = found.unsupported
    note_problem(slug)
    extra: dict[str, object] = {"param": param, "errors": found.errors}
    if found.more:
        extra["more_errors"] = found.more
    body = problem(status, slug, detail, request_id_of(request), extra=extra)
    return problem_response(status, body, {}, path=path)
