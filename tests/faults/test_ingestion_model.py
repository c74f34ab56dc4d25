"""Uploads, replacements, deletions, searches, questions, restarts and kills in any order equal a model in memory."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.faults.forked import ForkedServer
from tests.faults.library import ABSENT, Library

NAMES = st.sampled_from(["harbour", "lighthouse", "pilot", "ferry"])
PARAGRAPHS = st.integers(1, 12)


class Ingestion(RuleBasedStateMachine):
    """One server, killed and started as chance has it."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.server = ForkedServer(self.folder / "data")
        self.server.start()
        self.library = Library(self.server)
        self.kills = 0

    def teardown(self) -> None:
        if hasattr(self, "server"):
            self.server.close()
            shutil.rmtree(self.folder)

    @rule(name=NAMES, paragraphs=PARAGRAPHS)
    def upload(self, name: str, paragraphs: int) -> None:
        self.library.upload(name, paragraphs=paragraphs)

    @precondition(lambda self: self.library.present())
    @rule(data=st.data(), paragraphs=PARAGRAPHS)
    def replace(self, data: st.DataObject, paragraphs: int) -> None:
        self.library.replace(data.draw(st.sampled_from(self.library.present())), paragraphs=paragraphs)

    @precondition(lambda self: self.library.present())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.library.present()))
        gone = self.library.entries[name].markers
        self.library.delete(name)
        for marker in gone - {ABSENT}:
            assert self.library.search(marker) == set(), "found after its deletion was acknowledged"

    @rule()
    def ask(self) -> None:
        response = self.server.http.post("/v1/ask", json={"question": "How many ships did the keeper count?"})

        assert response.status_code == 200, response.text
        cited = {citation["document_id"] for citation in response.json()["citations"]}
        assert cited <= {entry.document_id for entry in self.library.entries.values()}

    @rule()
    def settle(self) -> None:
        self.library.check()
        self.kills = 0

    @precondition(lambda self: self.kills < 2)  # a third time a job would be given up: it might be what kills
    @rule()
    def kill(self) -> None:
        self.server.kill()
        self.server.start()
        self.kills += 1

    @rule()
    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    @invariant()
    def answers(self) -> None:
        if hasattr(self, "server"):
            assert self.server.http.get("/healthz").status_code == 200


@pytest.mark.timeout(600)
def test_whatever_happens_to_it_the_server_holds_what_it_acknowledged() -> None:
    run_state_machine_as_test(
        Ingestion,
        settings=settings(
            max_examples=3,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
