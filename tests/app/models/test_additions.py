"""app.models.additions: a model is added beside the server, which says how far it is; one can be cancelled."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.errors import Conflict, InvalidRequest, NotFound, TermsNotAccepted
from app.models.additions import AdditionState, ModelAdditions
from app.models.folder import resolve
from tests.app.models.hub_server import COMMIT, Hub
from tests.app.models.test_hub import NAME, WEIGHTS, hub

__all__ = ["hub"]


def environment_of(hub: Hub) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"HF_TOKEN", "HF_HUB_OFFLINE"}}
    return {**kept, "HF_ENDPOINT": hub.url}


@pytest.fixture
def additions(hub: Hub, tmp_path: Path) -> Iterator[ModelAdditions]:
    made = ModelAdditions(models_dir=tmp_path / "models", environment=environment_of(hub))
    yield made
    made.close()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def ended(additions: ModelAdditions) -> None:
    wait_until(lambda: additions.list()[0].state is not AdditionState.DOWNLOADING)


def test_a_model_is_added_with_its_progress(additions: ModelAdditions, hub: Hub, tmp_path: Path) -> None:
    go_on = hub.held["model.safetensors"] = threading.Event()
    begun = additions.add(NAME, accept_terms=False)

    assert (begun.model, begun.commit, begun.licence) == (NAME, COMMIT, "apache-2.0")
    assert begun.bytes > len(WEIGHTS)
    assert begun.state is AdditionState.DOWNLOADING
    wait_until(lambda: 0 < additions.list()[0].done_bytes < begun.bytes)
    with pytest.raises(Conflict, match="A model is being added"):
        additions.add("someone/other", accept_terms=False)

    go_on.set()
    ended(additions)

    (found,) = additions.list()
    assert (found.id, found.state, found.detail) == (begun.id, AdditionState.ADDED, None)
    assert found.done_bytes == begun.bytes
    assert (Path(resolve(NAME, models_dir=tmp_path / "models")) / "model.safetensors").read_bytes() == WEIGHTS
    assert additions.cancel(begun.id).state is AdditionState.ADDED


def test_terms_are_accepted_before_anything_is_downloaded(additions: ModelAdditions, hub: Hub) -> None:
    hub.licence = "gemma"

    with pytest.raises(TermsNotAccepted, match=f"{NAME} has the licence gemma"):
        additions.add(NAME, accept_terms=False)

    assert hub.sent == []
    assert additions.list() == ()
    additions.add(NAME, accept_terms=True)
    ended(additions)
    assert additions.list()[0].state is AdditionState.ADDED


def test_a_download_that_was_cancelled_is_begun_again(additions: ModelAdditions, hub: Hub) -> None:
    hub.held["model.safetensors"] = threading.Event()
    begun = additions.add(NAME, accept_terms=False)
    wait_until(lambda: any(name == "model.safetensors" for name, _ in hub.sent))

    assert additions.cancel(begun.id).state is AdditionState.CANCELLED
    hub.held.pop("model.safetensors").set()

    def again() -> bool:
        try:
            additions.add(NAME, accept_terms=False)
        except Conflict:  # the process has not ended yet
            return False
        return True

    wait_until(again)
    ended(additions)
    assert [one.state for one in additions.list()] == [AdditionState.ADDED, AdditionState.CANCELLED]


def test_a_file_that_is_not_what_the_hub_says_fails_with_the_reason(additions: ModelAdditions, hub: Hub) -> None:
    hub.lies["model.safetensors"] = bytes(len(WEIGHTS))
    additions.add(NAME, accept_terms=False)
    ended(additions)

    (found,) = additions.list()
    assert found.state is AdditionState.FAILED
    assert found.detail is not None
    assert "is not what the hub says it is" in found.detail


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("no model", "is no model of the hub"),
        ("--help", "is no model of the hub"),
        ("someone/else@v9", "has no such revision"),
    ],
)
def test_what_cannot_be_added_is_refused_at_once(named: str, reason: str, additions: ModelAdditions, hub: Hub) -> None:
    hub.status, hub.error = 404, "RevisionNotFound"

    with pytest.raises(InvalidRequest, match=reason):
        additions.add(named, accept_terms=False)

    assert additions.list() == ()
    hub.status = 200
    additions.add(NAME, accept_terms=False)  # nothing is in the way
    ended(additions)


def test_a_process_that_dies_is_a_failure(hub: Hub, tmp_path: Path) -> None:
    additions = ModelAdditions(models_dir=tmp_path, command=("false",), environment=environment_of(hub))

    with pytest.raises(InvalidRequest, match="ended early"):
        additions.add(NAME, accept_terms=False)


def test_a_server_that_may_ask_no_hub_asks_none(hub: Hub, tmp_path: Path) -> None:
    additions = ModelAdditions(models_dir=tmp_path, environment={**environment_of(hub), "HF_HUB_OFFLINE": "1"})

    with pytest.raises(InvalidRequest, match="HF_HUB_OFFLINE"):
        additions.add(NAME, accept_terms=False)


def test_an_addition_that_is_not_known_is_not_cancelled(additions: ModelAdditions) -> None:
    with pytest.raises(NotFound):
        additions.cancel("mod_1")


def test_the_process_gets_no_setting_of_the_server(hub: Hub, tmp_path: Path) -> None:
    shown = tmp_path / "environment"
    command = ("sh", "-c", f"env > {shown}")
    environment = {**environment_of(hub), "FOOTNOTE_ADMIN_KEY": "fn_secret"}

    with pytest.raises(InvalidRequest):
        ModelAdditions(models_dir=tmp_path, command=command, environment=environment).add(NAME, accept_terms=False)

    assert "FOOTNOTE_" not in shown.read_text()
    assert "HF_ENDPOINT" in shown.read_text()
