"""app.access.openid: signing in through an OpenID provider, and the tokens and callbacks that are refused."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.access.openid import Identity, OpenId, OpenIdConfig, local_path
from app.errors import InvalidRequest, ProviderUnavailable, Unauthenticated
from app.types import Role
from tests.app.access.provider import CLIENT_ID, CLIENT_SECRET, STRANGER, Provider, serving

CALLBACK = "http://testserver/v1/session/oidc/callback"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as provider:
        yield provider


def client_of(provider: Provider, *, admins: frozenset[str] = frozenset()) -> OpenId:
    return OpenId(
        OpenIdConfig(
            issuer=provider.issuer,
            client_id=CLIENT_ID,
            client_secret=SecretStr(CLIENT_SECRET),
            redirect_url="",
            tenant_id="default",
            role=Role.READER,
            admins=admins,
        )
    )


def sign_in(provider: Provider, openid: OpenId, *, next_path: str = "/") -> Identity:
    url, cookie = openid.begin(next_path=next_path, callback=CALLBACK)
    return openid.finish(**provider.authorize(url), cookie=cookie, callback=CALLBACK)


def test_who_the_provider_vouches_for_is_known_by_issuer_and_subject(provider):
    found = sign_in(provider, client_of(provider), next_path="/documents?q=1")

    assert found == Identity(provider.issuer, "s-1", "ada@example.org", Role.READER, "/documents?q=1")


LIES = {
    "another nonce": {"nonce": "n"},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "somebody-else"},
    "an audience among others without azp": {"aud": ["somebody-else"]},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": int(time.time()) - 3600},
    "from the future": {"nbf": int(time.time()) + 3600},
    "nobody": {"sub": ""},
    "no text": {"sub": 7},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_does_not_hold_signs_nobody_in(provider, lie):
    provider.claims |= LIES[lie]

    with pytest.raises(Unauthenticated):
        sign_in(provider, client_of(provider))


def test_a_clock_a_little_off_does_not_matter(provider):
    provider.claims |= {"exp": int(time.time()) - 20, "iat": int(time.time()) + 20}

    assert sign_in(provider, client_of(provider)).subject == "s-1"


def test_a_token_of_another_key_signs_nobody_in(provider):
    provider.signed_by = STRANGER

    with pytest.raises(Unauthenticated):
        sign_in(provider, client_of(provider))


def test_a_login_attempt_is_accepted_only_once(provider):
    openid = client_of(provider)
    url, cookie = openid.begin(next_path="/", callback=CALLBACK)
    first, again = provider.authorize(url), provider.authorize(url)
    openid.finish(**first, cookie=cookie, callback=CALLBACK)

    with pytest.raises(Unauthenticated, match="over"):
        openid.finish(**again, cookie=cookie, callback=CALLBACK)
    assert provider.exchanges == 1


@pytest.mark.parametrize("swap", ["cookie", "none", "broken", "unsealed", "another process"])
def test_a_login_attempt_is_accepted_only_with_its_own_cookie(provider, swap):
    openid = client_of(provider)
    url, cookie = openid.begin(next_path="/", callback=CALLBACK)
    other_process = client_of(provider).begin(next_path="/", callback=CALLBACK)[1]
    cookies = {
        "cookie": openid.begin(next_path="/", callback=CALLBACK)[1],
        "none": None,
        "broken": "x.é",
        "unsealed": cookie.partition(".")[0] + ".",
        "another process": other_process,
    }

    with pytest.raises(Unauthenticated):
        openid.finish(**provider.authorize(url), cookie=cookies[swap], callback=CALLBACK)
    assert provider.exchanges == 0


def test_an_attempt_lasts_ten_minutes(provider):
    now = [time.time()]
    openid = OpenId(client_of(provider).config, clock=lambda: now[0])
    url, cookie = openid.begin(next_path="/", callback=CALLBACK)
    now[0] += 600

    with pytest.raises(Unauthenticated):
        openid.finish(**provider.authorize(url), cookie=cookie, callback=CALLBACK)


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({}, Role.ADMIN),
        ({"email": "ADA@example.org"}, Role.ADMIN),
        ({"email_verified": False}, Role.READER),
        ({"email_verified": "true"}, Role.READER),
        ({"email": "eve@example.org"}, Role.READER),
    ],
)
def test_only_a_verified_address_makes_an_administrator(provider, claims, role):
    provider.claims |= claims

    assert sign_in(provider, client_of(provider, admins=frozenset({"ada@example.org"}))).role is role


def test_a_subject_can_be_an_administrator(provider):
    assert sign_in(provider, client_of(provider, admins=frozenset({"s-1"}))).role is Role.ADMIN


def test_a_provider_that_fails_is_named_and_not_quoted(provider):
    openid = client_of(provider)
    url, cookie = openid.begin(next_path="/", callback=CALLBACK)
    provider.failing = True

    with pytest.raises(ProviderUnavailable) as failure:
        openid.finish(**provider.authorize(url), cookie=cookie, callback=CALLBACK)
    assert "secret" not in str(failure.value)
    with pytest.raises(ProviderUnavailable):
        client_of(provider).begin(next_path="/", callback=CALLBACK)


@pytest.mark.parametrize(
    "description",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://169.254.169.254/token"},
        {"jwks_uri": "http://evil.example/jwks"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": None},
    ],
)
def test_discovery_with_endpoints_on_another_host_is_refused(provider, description):
    provider.description = description

    with pytest.raises(ProviderUnavailable):
        client_of(provider).begin(next_path="/", callback=CALLBACK)


@pytest.mark.parametrize(
    "path", ["", "x", "//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil", "/a\nb"]
)
def test_a_login_leads_to_this_server(path):
    with pytest.raises(InvalidRequest):
        local_path(path)


@given(st.text(alphabet="/\\:@.?#ab\t\n\x7f", max_size=8))
def test_a_local_path_begins_with_one_slash(path):
    try:
        taken = local_path(path)
    except InvalidRequest:
        return
    assert taken == path
    assert taken[:1] == "/"
    assert taken[1:2] not in {"/", "\\"}
