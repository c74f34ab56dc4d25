"""A short fuzz of the API against its OpenAPI document; the long form is `python -m tests.fuzz --requests 20000`."""

from collections.abc import Iterator

import pytest

from app.types import Role
from tests.fuzz.application import Served, served
from tests.fuzz.campaign import Campaign, run_campaign

pytestmark = [
    # Hypothesis' own threads and the server's connections end after the test that was using them
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("fuzz") / "data") as server:
        yield server


def campaign(server: Served, secret: str, *, seed: int = 1, **chosen) -> Campaign:
    return run_campaign(server.url, secret=secret, spared=server.ids_of(secret), seed=seed, **chosen)


@pytest.fixture(autouse=True)
def loop_is_never_held(server: Served) -> Iterator[None]:
    """No request may hold the event loop or the interpreter for more than a tenth of a second."""
    server.watch.forget()
    yield
    assert server.watch.noted() == []


def told(found: Campaign) -> list[str]:
    return [f"{one.operation} {one.check}: {one.said}\n{one.curl}" for one in found.broken.values()] + found.errors


def test_every_answer_to_an_example_is_as_the_description_says(server):
    found = campaign(server, server.key(Role.ADMIN), examples=1, phases=("examples",))

    assert told(found) == []
    assert found.requests > 40


def test_every_answer_to_boundary_values_is_as_the_description_says(server):
    asking = campaign(
        server,
        server.key(Role.ADMIN),
        examples=1,
        phases=("coverage",),
        only=r"^/v1/(search|collections)$",
    )

    assert told(asking) == []
    assert asking.requests > 150


def test_chains_of_requests_with_real_ids_are_as_the_description_says(server):
    """Which requests follow which is random; seeds are tried until one has used an id that a response gave."""
    for seed in range(1, 6):
        found = campaign(server, server.key(Role.ADMIN), seed=seed, examples=8, phases=("stateful",))
        assert told(found) == []
        if any(status == 200 and "{" in operation for operation, status in found.by_status):
            return
    pytest.fail("no seed used a real id")


@pytest.mark.parametrize("tenant", [None, "rival"])
def test_a_readers_refusals_are_as_the_description_says(server, tenant):
    secret = server.key(Role.READER, tenant_id=tenant)
    found = campaign(server, secret, examples=1, phases=("examples",), only=r"^/v1/(search|conversations|admin/.*)$")

    assert told(found) == []
    assert {status for _, status in found.by_status} >= {200, 403}
