"""FAULTS.md E11 over real sockets: a caller at its limit is refused, and no other caller is affected."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.settings import Settings
from tests.faults.forked import ForkedServer

GUESSES = Settings(_env_file=None).failed_logins_per_minute
LONGEST_WAIT_S = 61  # a window of a minute, counted in steps of less than a second


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedServer]:
    folder: Path = tmp_path_factory.mktemp("limits")
    made = ForkedServer(folder / "data")
    try:
        yield made.start()
    finally:
        made.close()


def tenant_key(server: ForkedServer, tenant: str) -> str:
    """The secret of the first key of a new tenant."""
    server.http.post("/v1/admin/tenants", json={"id": tenant, "name": tenant}).raise_for_status()
    secret: str = server.http.post(f"/v1/admin/tenants/{tenant}/keys", json={}).raise_for_status().json()["secret"]
    return secret


def search(server: ForkedServer, key: str, *, address: str) -> httpx.Response:
    """A request that a trusted proxy forwards for a client of this address."""
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": address}
    return server.http.post("/v1/search", json={"query": "ships"}, headers=headers)


def assert_refused(response: httpx.Response, *, limit_name: str, limit: int) -> None:
    """The response is a 429 that names the limit and the wait in its body and its headers."""
    problem = response.json()
    assert (response.status_code, problem["type"]) == (429, "urn:footnote:problem:rate-limited")
    assert (problem["limit_name"], problem["limit"]) == (limit_name, limit)
    assert 1 <= int(response.headers["retry-after"]) == problem["retry_after_s"] <= LONGEST_WAIT_S
    assert response.headers["ratelimit"].startswith(f'"{limit_name}";r=0;t=')
    assert response.headers["ratelimit-policy"] == f'"{limit_name}";q={limit};w=60'


def test_e11_a_tenant_at_its_limit_is_refused_and_another_is_served(server: ForkedServer) -> None:
    busy, quiet = tenant_key(server, "busy"), tenant_key(server, "quiet")
    server.http.put("/v1/admin/limits/tenants/busy", json={"requests_per_minute": 2}).raise_for_status()
    address = "192.0.2.1"

    statuses = [search(server, busy, address=address).status_code for _ in range(2)]
    refused, served = search(server, busy, address=address), search(server, quiet, address=address)

    assert statuses == [200, 200]
    assert_refused(refused, limit_name="tenant-requests", limit=2)
    assert served.status_code == 200


def test_e11_an_address_that_guesses_keys_is_refused_and_others_behind_the_proxy_are_served(
    server: ForkedServer,
) -> None:
    key, known = tenant_key(server, "victim"), tenant_key(server, "neighbour")
    guesser, other = "198.51.100.1", "198.51.100.2"
    before = search(server, known, address=guesser)

    statuses = [search(server, f"fn_guess_{number}", address=guesser).status_code for number in range(GUESSES)]
    refused = search(server, "fn_guess_again", address=guesser)
    good_key_there = search(server, key, address=guesser)
    good_key_elsewhere, known_key_there = search(server, key, address=other), search(server, known, address=guesser)

    assert statuses == [401] * GUESSES
    for response in (refused, good_key_there):
        assert_refused(response, limit_name="failed-logins", limit=GUESSES)
    assert good_key_elsewhere.status_code == 200
    assert (before.status_code, known_key_there.status_code) == (200, 200), "it was valid from there before"
