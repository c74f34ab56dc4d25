"""A short run of every grammar against the served application, after each case that failed once.

The long form is `python -m tests.fuzz`. It writes a case that fails into `tests/fuzz/seeds`.
"""

import json
from collections.abc import Iterator

import pytest

from tests.examples import examples
from tests.fuzz.application import Served, served
from tests.fuzz.grammars.every import CASES, every_target
from tests.fuzz.seeds_kept import kept_seeds, kept_targets
from tests.fuzz.target import Fault, Target, hunt, tried_once

pytestmark = [
    pytest.mark.timeout(600),
    # Starlette leaves the file of an unfinished part to the garbage collector, a server a connection that was cut
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SEED = 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("grammars") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def targets(server: Served) -> Iterator[dict[str, Target]]:
    with every_target(server.url) as targets:
        yield targets


@pytest.fixture(autouse=True)
def loop_is_never_held(server: Served) -> Iterator[None]:
    """No request may hold the event loop or the interpreter for more than a tenth of a second."""
    server.watch.forget()
    yield
    assert server.watch.noted() == []


def told(fault: Fault | None) -> str | None:
    """What is said of a fault, with the case to keep."""
    if fault is None:
        return None
    return f"{fault.said}\nthe case, for tests/fuzz/seeds/{fault.target}: {json.dumps({'case': fault.case})}"


@pytest.mark.parametrize("name", CASES)
def test_each_case_that_failed_once_keeps_its_promise(targets: dict[str, Target], name: str) -> None:
    for file, case in kept_seeds(name).items():
        assert told(tried_once(targets[name], case)) is None, file


@pytest.mark.parametrize("name", CASES)
def test_random_cases_keep_their_promises(targets: dict[str, Target], name: str) -> None:
    wanted = examples(3 * CASES[name])  # a third of them without `--exhaustive`
    hunted = hunt(targets[name], seed=SEED, examples=wanted)

    assert told(hunted.fault) is None
    assert hunted.cases >= 0.8 * wanted, "the grammar makes too few cases"


def test_requests_that_are_read_and_requests_that_are_refused_are_made(targets: dict[str, Target]) -> None:
    """A grammar all of whose requests are refused, or none, would test little."""
    for name in ("filters", "multipart"):
        hunt(targets[name], seed=SEED, examples=25)
        statuses = {status for _, status in targets[name].answers}
        assert 200 in statuses
        assert statuses & {400, 422}


def test_every_kept_seed_is_of_a_target() -> None:
    assert kept_targets() <= set(CASES)
