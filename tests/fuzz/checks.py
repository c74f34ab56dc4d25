"""What every answer promises besides its schema: failures are RFC 9457 problems that give nothing away."""

import re
from typing import Any, cast

import schemathesis
from schemathesis import Case, CheckContext, CheckFunction, Response
from schemathesis.checks import CHECKS as REGISTERED
from schemathesis.checks import load_all_checks
from schemathesis.core.failures import Failure

from tests.server import ADMIN_KEY

_MEMBERS = ("type", "title", "status", "detail", "instance")
_INSIDE = re.compile(
    r"Traceback|\.py\b|line \d+, in |site-packages|sqlalchemy|sqlite3?\.|psycopg|pydantic"
    r"|/(tmp|dev|home|usr|root|work)/|\b0x[0-9a-f]{6,}|<class |<[\w.]+ object"
)
# The ledger names keys and users: ended, and still shown. A limit that is deleted gives way to the default.
_KEPT = re.compile(r"/v1/admin/(keys|users|limits/keys|limits/tenants)/.*")
# Without a second embedder there is nothing to change to, and these say so (503).
_NOT_SERVED = re.compile(r"/v1/admin/generations/\{generation_id\}/(confirm|rollback)")
_OPENAI = ("/v1/chat/completions", "/v1/models", "/v1/embeddings", "/v1/files", "/v1/responses", "/v1/vector_stores")


load_all_checks()
_accepts = cast(CheckFunction, REGISTERED.get_one("positive_data_acceptance"))
_refuses_methods = cast(CheckFunction, REGISTERED.get_one("unsupported_method"))
_refuses_misfits = cast(CheckFunction, REGISTERED.get_one("negative_data_rejection"))
_forgets = cast(CheckFunction, REGISTERED.get_one("use_after_free"))
_available = cast(CheckFunction, REGISTERED.get_one("ensure_resource_availability"))


@schemathesis.check
def nothing_breaks(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """No status of 500 and above comes of a request, whatever it is."""
    if response.status_code == 503 and _NOT_SERVED.fullmatch(case.path):
        assert response.json()["type"] == "urn:footnote:problem:not-ready", "it is another 503 than the one expected"
        return
    assert response.status_code < 500, f"a server error: {response.content[:300]!r}"


@schemathesis.check
def fitting_requests_are_read(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """What fits the document is never refused by the reading of it.

    It may be refused for what a schema cannot say: a cursor of another list, two fields that contradict each other, a
    name that is taken. Such a refusal has no `errors`, which is the list of fields that were malformed, or all of them
    are errors of values that are well formed.
    """
    try:
        return bool(_accepts(ctx, response, case))
    except Failure:
        if response.status_code in {400, 413, 415, 422} and not _malformed(response.json()):
            return None
        raise


@schemathesis.check
def what_was_made_is_there(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """The id of what was just made is good for everything, unless the answer was an old one that was given again."""
    try:
        return bool(_available(ctx, response, case))
    except Failure:
        parent = ctx.internals.find_parent(case_id=case.id)
        made = ctx.internals.find_response(case_id=parent.id) if parent is not None else None
        if made is not None and "idempotent-replayed" in made.headers:
            return None
        raise


@schemathesis.check
def misfits_are_refused(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """What does not fit the document is refused; a real id may have taken the place of the only thing that did not.

    A list above its maximum may be refused as a body that is too large, a status that Schemathesis does not expect.
    """
    if response.status_code == 413:
        return None
    try:
        return bool(_refuses_misfits(ctx, response, case))
    except Failure as failure:
        if "Invalid component: positive test case" in failure.message:
            return None
        raise


@schemathesis.check
def what_was_deleted_is_gone(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Nothing answers under the id of what was deleted, but for what the ledger names."""
    return None if _KEPT.fullmatch(case.path) else bool(_forgets(ctx, response, case))


@schemathesis.check
def other_methods_are_refused(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """A method that is not described is a 405, or a 403 to who may not call what nobody listed."""
    try:
        return bool(_refuses_methods(ctx, response, case))
    except Failure:
        if response.status_code == 403:
            return None
        raise


@schemathesis.check
def failures_are_problems(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Every status of 400 and above is a problem document about this very request (RFC 9457)."""
    if response.status_code < 400 or _is_readiness(case):
        return
    content_type = _header(response, "content-type")
    assert content_type == "application/problem+json", f"a failure of type {content_type}: {response.content[:300]!r}"
    body = response.json()
    for member in _MEMBERS:
        assert member in body, f"the problem has no '{member}'"
    assert body["status"] == response.status_code, f"it says {body['status']}"
    assert body["instance"] == _header(response, "x-request-id"), "it is about another request"
    assert re.fullmatch(r"urn:footnote:problem:[a-z0-9-]+", body["type"]), body["type"]
    assert isinstance(body["detail"], str), body["detail"]
    assert body["detail"], "the problem has no detail"
    if case.path.startswith(_OPENAI):
        assert {"message", "type", "code", "param"} <= body["error"].keys(), "OpenAI's clients find no error"


@schemathesis.check
def failures_give_nothing_away(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """No stack, path, module or secret of ours is in a failure, unless the client sent it."""
    if response.status_code < 400:
        return
    text = response.content.decode("utf-8", errors="replace")
    assert ADMIN_KEY not in text, "it holds a secret"
    sent = f"{response.request.url} {response.request.headers} {response.request.body!r}"
    found = _INSIDE.search(text)
    assert found is None or found[0] in sent, f"it tells of the inside: {text[max(0, found.start() - 80) :][:200]!r}"


@schemathesis.check
def refused_methods_name_the_others(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """A 405 has Allow with every method of the address (RFC 9110, section 15.5.6)."""
    if response.status_code == 405:
        declared = {method.upper() for method in case.operation.schema[case.operation.path]}
        allowed = {method.strip() for method in _header(response, "allow").split(",")}
        assert allowed >= declared, f"Allow is {sorted(allowed)} where {sorted(declared)} are described"


@schemathesis.check
def refusals_say_when_to_come_back(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """A 429 that ends by itself and every 503 have Retry-After in whole seconds (RFC 9110, section 10.2.3)."""
    if response.status_code not in {429, 503} or _is_readiness(case):
        return
    if response.status_code == 429 and response.json().get("reset_at", 0) is None:
        return  # a budget without periods: waiting does not help
    after = _header(response, "retry-after")
    assert re.fullmatch(r"[1-9][0-9]*", after), f"Retry-After is {after!r}"


@schemathesis.check
def answers_are_named_and_guarded(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Every response carries its request's id, and headers that keep browsers from guessing."""
    assert re.fullmatch(r"req_[0-9a-z]+", _header(response, "x-request-id")), "it has no X-Request-Id"
    assert _header(response, "x-content-type-options") == "nosniff", "browsers may guess its type"


CHECKS = [
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
    "missing_required_header",
    "allow_header_conformance",
    nothing_breaks.__name__,
    fitting_requests_are_read.__name__,
    what_was_made_is_there.__name__,
    misfits_are_refused.__name__,
    what_was_deleted_is_gone.__name__,
    other_methods_are_refused.__name__,
    failures_are_problems.__name__,
    failures_give_nothing_away.__name__,
    refused_methods_name_the_others.__name__,
    refusals_say_when_to_come_back.__name__,
    answers_are_named_and_guarded.__name__,
]
"""Schemathesis' own and ours."""


def _malformed(problem: dict[str, Any]) -> list[str]:
    """The fields of a refusal that a schema could have refused."""
    if problem["type"] == "urn:footnote:problem:unsupported-parameter":
        return []
    return [one["field"] for one in problem.get("errors", ()) if not one["message"].startswith("Value error, ")]


def _header(response: Response, name: str) -> str:
    values: Any = response.headers.get(name, [""])
    return str(values[0])


def _is_readiness(case: Case[Any]) -> bool:
    return case.path == "/readyz"  # its 503 is the report of a probe
