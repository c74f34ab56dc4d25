"""`footnote reembed` shows the progress of a rebuild, and deletes the old vectors when told to."""

from io import StringIO
from typing import cast

import httpx
import pytest
from rich.console import Console

from app.cli.reembed import watch
from app.client import Client
from app.errors import SetupError
from tests.app.server.embedder_swaps import GatedEmbedder, Served, served


def client_of(application: Served) -> Client:
    return Client(cast(httpx.Client, application.http))  # the same methods


def test_it_waits_for_the_swap_and_deletes_what_was_before_when_asked(tmp_path):
    old, new = GatedEmbedder(dim=64), GatedEmbedder(dim=96)
    with served(tmp_path / "data", old) as application:
        application.upload("Ships pass the lighthouse.", "Herons stand in the reeds.")
    with served(tmp_path / "data", new, old) as application:
        said = StringIO()
        watch(client_of(application), Console(file=said), confirm=False)
        assert "Searched by hashing, generation 2." in said.getvalue()
        assert "footnote reembed --confirm" in said.getvalue()
        application.http.post("/v1/admin/generations/2/confirm")
    with served(tmp_path / "data", new) as application:
        watch(client_of(application), Console(file=(said := StringIO())), confirm=True)
        assert "from before" not in said.getvalue(), "nothing is left"


def test_a_building_that_stands_still_is_an_error(tmp_path):
    def fail() -> None:
        raise ValueError

    with served(tmp_path / "data", old := GatedEmbedder(dim=64)) as application:
        application.upload("Ships pass the lighthouse.")
    with (
        served(tmp_path / "data", GatedEmbedder(dim=96, before=fail), old) as application,
        pytest.raises(SetupError, match="the log has it"),
    ):
        watch(client_of(application), Console(file=StringIO()), confirm=False)
