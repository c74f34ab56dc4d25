"""app.access.policy denies what it does not name."""

import pytest

from app.access.policy import allows, is_public, required_role
from app.types import Role


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "TRACE"])
def test_administration_is_for_administrators_whatever_the_method(method):
    assert required_role(method, "/v1/admin/anything") is Role.ADMIN
    assert required_role(method, "/v1/admin") is Role.ADMIN


def test_a_write_no_rule_names_needs_an_administrator():
    assert required_role("POST", "/v1/invented") is Role.ADMIN
    assert required_role("DELETE", "/elsewhere") is Role.ADMIN


@pytest.mark.parametrize("path", ["/v1/documents", "/v1", "/docsx", "/metrics/x", "//healthz", "/v1/admin/../../docs"])
def test_nothing_but_the_named_pages_is_public(path):
    assert not is_public(path)


def test_a_higher_role_includes_the_lower_ones():
    assert [allows(role, Role.MEMBER) for role in (Role.READER, Role.MEMBER, Role.ADMIN)] == [False, True, True]
