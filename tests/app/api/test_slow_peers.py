"""Servers of other people that do not answer hold up only the requests that wait for them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.admission.address_rate import AddressRate
from app.api.application import create_app
from app.outbound.web_pages import WebPages
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role
from tests.app.access.provider import CLIENT_ID, CLIENT_SECRET
from tests.app.api.conftest import ADMIN_KEY
from tests.app.outbound.slow_peer import SlowPeer, ToLoopback, slow_peer
from tests.app.outbound.test_web_pages import PUBLIC
from tests.app.server.stations import state_with
from tests.installation import installed

AT_ONCE_S = 10  # far below the time that a peer may take, and enough for a busy machine
ATTACKER, SOMEBODY = "203.0.113.7", "198.51.100.9"


@pytest.fixture
def peer() -> Iterator[SlowPeer]:
    with slow_peer() as peer:
        yield peer


@asynccontextmanager
async def served(state: State) -> AsyncIterator[Callable[..., httpx.AsyncClient]]:
    """Gives clients of the application, each with a key and an address of its own."""
    app = create_app(lambda: nullcontext(state), version="0")
    clients: list[httpx.AsyncClient] = []

    def client(key: str = "", *, address: str = SOMEBODY) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(app, client=(address, 40_000))
        clients.append(httpx.AsyncClient(transport=transport, base_url="http://server", headers=headers, timeout=None))
        return clients[-1]

    async with app.router.lifespan_context(app):
        yield client
        for each in clients:
            await each.aclose()


def key_of(state: State, tenant: str) -> str:
    return state.access.keys.create(tenant_id=tenant, user_id="u", name=tenant, role=Role.MEMBER)[1]


async def until_answered(tasks: "list[asyncio.Task[httpx.Response]]", count: int) -> list[httpx.Response]:
    """The answers of `count` tasks, once they have come."""
    async with asyncio.timeout(AT_ONCE_S):
        while sum(task.done() for task in tasks) < count:
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
    return [task.result() for task in tasks if task.done()]


async def at_once(request: Awaitable[httpx.Response]) -> httpx.Response:
    async with asyncio.timeout(AT_ONCE_S):
        return await request


def assert_full(response: httpx.Response) -> None:
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["type"]) == (503, "urn:footnote:problem:server-full")
    assert response.headers["Content-Type"] == "application/problem+json"
    assert int(response.headers["Retry-After"]) > 0


async def test_forty_slow_web_pages_of_a_tenant_hold_up_nothing_else(state, peer):
    pages = WebPages(resolve=lambda _host, _port: [PUBLIC], backend=ToLoopback(peer.port))
    fetching = state_with(state, web_pages=pages)
    acme, globex = key_of(state, "acme"), key_of(state, "globex")
    async with served(fetching) as client:
        slow, other = client(acme), client(globex)

        def fetch(by: httpx.AsyncClient, number: int) -> "asyncio.Task[httpx.Response]":
            return asyncio.create_task(by.post("/v1/documents", json={"url": f"http://slow.example/{number}.txt"}))

        tasks = [fetch(slow, number) for number in range(40)]
        try:
            listed = await at_once(other.get("/v1/documents"))
            refused = await until_answered(tasks, 36)
            theirs = fetch(other, 40)
            await asyncio.to_thread(peer.wait_for, 5)
            under_way = [*(task for task in tasks if not task.done()), theirs]
        finally:
            peer.release()
        fetched = [await at_once(task) for task in under_way]
        again = await at_once(slow.post("/v1/documents", json={"url": "http://slow.example/again.txt"}))

    assert listed.status_code == 200
    assert len(refused) == 36
    for response in refused:
        assert_full(response)
    assert len(fetched) == 5, "four of one tenant and one of the other"
    assert all(response.is_success for response in [*fetched, again]), "the threads are free again"


@pytest.fixture
def state_with_slow_provider(tmp_path: Path, peer: SlowPeer) -> Iterator[State]:
    settings = Settings(
        data_dir=installed(tmp_path / "data"),
        admin_key=ADMIN_KEY,
        oidc_issuer=peer.url,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        _env_file=None,
    )
    with build(settings, with_models=False) as state:
        yield state


async def test_forty_sign_ins_with_a_slow_provider_hold_up_nothing_else(state_with_slow_provider, peer):
    async with served(state_with_slow_provider) as client:
        stranger, other = client(address=ATTACKER), client(key_of(state_with_slow_provider, "globex"))
        tasks = [asyncio.create_task(stranger.get("/v1/session/oidc/login")) for _ in range(40)]
        try:
            listed = await at_once(other.get("/v1/documents"))
            refused = await until_answered(tasks, 38)
            somebody = asyncio.create_task(client(address=SOMEBODY).get("/v1/session/oidc/login"))
            await asyncio.to_thread(peer.wait_for, 3)
            under_way = [*(task for task in tasks if not task.done()), somebody]
        finally:
            peer.release()
        ended = [await at_once(task) for task in under_way]

    assert listed.status_code == 200
    for response in refused:
        assert_full(response)
    assert [response.json()["type"] for response in ended] == ["urn:footnote:problem:provider-unavailable"] * 3


async def test_sign_ins_with_a_provider_are_limited_by_address(state_with_slow_provider, peer):
    limited = state_with(state_with_slow_provider, openid_rate=AddressRate(3, name="openid-requests"))
    peer.release()
    async with served(limited) as client:
        stranger, other = client(address=ATTACKER), client(address=SOMEBODY)
        paths = ("login", "callback?code=x", "login", "callback?code=x", "login")
        answers = [await at_once(stranger.get(f"/v1/session/oidc/{path}")) for path in paths]
        theirs = await at_once(other.get("/v1/session/oidc/login"))

    assert [answer.status_code for answer in answers] == [503, 401, 503, 429, 429]
    assert answers[-1].headers["Content-Type"] == "application/problem+json"
    assert answers[-1].json()["limit_name"] == "openid-requests"
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert theirs.status_code == 503, "the provider's answer, which is none of a provider"
    assert theirs.json()["type"] == "urn:footnote:problem:provider-unavailable"
