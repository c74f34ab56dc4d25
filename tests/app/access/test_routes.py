"""The route table: every route has exactly one row, every row a route, and what has none is denied."""

import pytest
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount

from app.access.routes import ROUTES, AdmissionControl, RouteReach, is_public, refusal, rule_for, speaks_openai
from app.api.application import create_app
from app.types import Principal, Role

GENERATION, RETRIEVAL, RATE_LIMITS = (
    AdmissionControl.GENERATION,
    AdmissionControl.RETRIEVAL,
    AdmissionControl.RATE_LIMITS,
)
ADMISSION = {
    ("POST", "/v1/ask"): GENERATION,
    ("POST", "/v1/chat/completions"): GENERATION,
    ("POST", "/v1/messages"): GENERATION,
    ("POST", "/v1/responses"): GENERATION,
    ("POST", "/v1/search"): RETRIEVAL,
    ("GET", "/v1/documents/{document_id}/compare"): RETRIEVAL,
    ("POST", "/v1/embeddings"): RETRIEVAL,
    ("POST", "/v1/tokens/count"): RETRIEVAL,
    ("POST", "/v1/vector_stores/{vector_store_id}/search"): RETRIEVAL,
    ("GET", "/v1/answers/{id}/receipt"): RATE_LIMITS,
    ("POST", "/v1/documents"): RATE_LIMITS,
    ("PUT", "/v1/documents/{document_id}"): RATE_LIMITS,
    ("POST", "/v1/files"): RATE_LIMITS,
    ("POST", "/v1/vector_stores/{vector_store_id}/files"): RATE_LIMITS,
}
SECRETS = {
    ("POST", "/v1/admin/keys"),
    ("POST", "/v1/admin/keys/{key_id}/rotate"),
    ("POST", "/v1/admin/tenants/{tenant_id}/keys"),
    ("POST", "/v1/admin/invitations"),
    ("POST", "/v1/admin/users/{user_id}/sign-in-link"),
    ("POST", "/v1/invitations/accept"),
}
OPENAI = ("/v1/chat/completions", "/v1/embeddings", "/v1/files", "/v1/models", "/v1/responses", "/v1/vector_stores")


def application_routes() -> set[tuple[str, str]]:
    """(method, path template) of every route of the application; `*` for a folder of files."""
    routes = set()
    for route in iter_route_contexts(create_app(lambda: pytest.fail("nothing is served"), version="0").routes):
        if isinstance(route.original_route, Mount):
            routes.add(("*", f"{route.path}/{{path:path}}"))
        else:
            routes |= {(method, str(route.path)) for method in route.methods or ()}
    return routes


APPLICATION = application_routes()


def rows_of(method: str, template: str) -> list[int]:
    wanted = {"GET" if method == "HEAD" else method, "*"}
    return [
        number
        for number, rule in enumerate(ROUTES)
        if rule.path == template and not wanted.isdisjoint(rule.methods.split())
    ]


def request_path(template: str) -> str:
    """A path that the template matches."""
    return template.replace("{", "").replace("}", "").replace(":path", "")


@pytest.mark.parametrize(("method", "template"), sorted(APPLICATION))
def test_every_route_has_exactly_one_row_and_its_requests_find_it(method, template):
    (number,) = rows_of(method, template)

    assert rule_for(method, request_path(template)) is ROUTES[number]


@pytest.mark.parametrize("rule", ROUTES, ids=lambda rule: f"{rule.methods} {rule.path}")
def test_every_row_has_a_route_for_each_of_its_methods(rule):
    methods = {method for method, template in APPLICATION if template == rule.path}

    assert methods
    assert rule.methods == "*" or set(rule.methods.split()) <= methods


def test_the_routes_that_are_limited_and_those_that_answer_secrets():
    limited = {route: rule_for(*route).admission for route in APPLICATION}

    assert {route: control for route, control in limited.items() if control is not AdmissionControl.NONE} == ADMISSION
    assert {route for route in APPLICATION if rule_for(*route).secret} == SECRETS


@pytest.mark.parametrize(("method", "template"), sorted(APPLICATION))
def test_errors_below_openais_addresses_have_openais_form(method, template):
    assert rule_for(method, request_path(template)).openai == template.startswith(OPENAI)
    assert speaks_openai(request_path(template)) == template.startswith(OPENAI)
    assert speaks_openai(f"{request_path(template)}/invented") == template.startswith(OPENAI)


def test_the_administration_is_closed_to_limited_keys_but_for_keys():
    whole = {
        path
        for method, path in APPLICATION
        if rule_for(method, request_path(path)).reach in {RouteReach.TENANT, RouteReach.INSTALLATION}
    }

    assert whole == {
        path for _, path in APPLICATION if path.startswith("/v1/admin/") and not path.startswith("/v1/admin/keys")
    }


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "TRACE"])
def test_administration_is_for_administrators_whatever_the_method(method):
    assert rule_for(method, "/v1/admin/anything").role is Role.ADMIN
    assert rule_for(method, "/v1/admin").role is Role.ADMIN


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/invented"), ("DELETE", "/elsewhere"), ("PUT", "/v1/ask")])
def test_a_write_without_a_row_needs_an_administrator(method, path):
    assert rule_for(method, path).role is Role.ADMIN


@pytest.mark.parametrize("path", ["/v1/documents", "/v1", "/docsx", "/metrics/x", "//healthz", "/v1/admin/../../docs"])
def test_nothing_but_the_listed_pages_is_public(path):
    assert not is_public(path)


@pytest.mark.parametrize("role", list(Role))
def test_a_higher_role_includes_the_lower_ones(role):
    caller = Principal("default", "ada", "key_1", role)

    assert refusal(caller, "POST", "/v1/ask") is None
    assert (refusal(caller, "POST", "/v1/collections") is None) == (role in {Role.MEMBER, Role.ADMIN})
    assert (refusal(caller, "GET", "/v1/admin/users") is None) == (role is Role.ADMIN)


def test_whole_tenants_are_closed_to_limited_keys_and_the_installation_to_other_tenants():
    limited = Principal("default", "ada", "key_1", Role.ADMIN, collections=("col_1",))
    other = Principal("rival", "bob", "key_2", Role.ADMIN)

    assert refusal(limited, "GET", "/v1/admin/keys") is None
    assert "not limited to collections" in str(refusal(limited, "GET", "/v1/admin/users"))
    assert "whole installation" in str(refusal(other, "GET", "/v1/admin/tenants"))
    assert refusal(other, "GET", "/v1/admin/users") is None
