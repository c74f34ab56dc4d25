"""Sources that disagree, over HTTP: both values with their footnotes, in each form, streamed, kept and exported."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from app.server.state import State
from retrieval.types import Hit
from tests.app.answering.answerers import QuotesAs
from tests.app.api.test_quoted_answers import Served, sliced
from tests.app.api.test_reader import QUESTION
from tests.retrieval.fakes import chunk, hit

SAID = "The harbour master logged forty ships in May."
OTHERWISE = "In May the harbour master logged sixty ships."


def found(*texts: str) -> tuple[Hit, ...]:
    hits = [hit(chunk(rank, text, document_id=f"doc_{rank}"), rank=rank) for rank, text in enumerate(texts, start=1)]
    return tuple(replace(one, scores=replace(one.scores, dense=0.8)) for one in hits)


@pytest.fixture
def served(state: State) -> Iterator[Served]:
    with ExitStack() as stack:
        one = Served(
            state, QuotesAs.ONLY, found=found(f"{SAID} It rained.", f"{OTHERWISE} It was hot."), other="sixty ships"
        )
        stack.enter_context(one.client)
        yield one


def conflict_of(body: Any) -> list[str]:
    (conflict,) = body["conflicts"]
    assert conflict["what"] == "number"
    return [body["citations"][place]["cited_text"] for place in conflict["citations"]]


@pytest.mark.parametrize("form", ["markdown", "text"])
def test_the_answer_says_both_values_with_their_footnotes_and_confirms_neither(served: Served, form: str) -> None:
    body = served.ask(format=form)

    notes = [part for part in body["parts"] if part["kind"] == "note"]
    assert [(sliced(body, part), part["code"]) for part in notes] == [
        ("The sources disagree: forty ships [1]; sixty ships [2].", "sources_disagree")
    ]
    assert body["conflicts"] == [{"what": "number", "citations": notes[0]["citations"]}]
    assert conflict_of(body) == [SAID, OTHERWISE]
    assert [sliced(body, quote) for quote in body["quoted_spans"]] == [SAID, OTHERWISE]
    assert body["answered"]
    assert not any(citation["verified"] for citation in body["citations"])


def test_json_has_both_footnotes_without_a_note(served: Served) -> None:
    assert conflict_of(served.ask(format="json")) == [SAID, OTHERWISE]


def test_a_short_answer_quotes_both(served: Served) -> None:
    assert conflict_of(served.ask(length="short")) == [SAID, OTHERWISE]


def test_a_stream_and_a_kept_answer_tell_it_too(served: Served) -> None:
    conversation = served.client.post("/v1/conversations", json={}).json()["id"]

    events = served.events(conversation_id=conversation)

    done = dict(events)["done"]
    (turn,) = served.client.get(f"/v1/conversations/{conversation}").json()["data"]
    assert done["conflicts"] == turn["making"]["conflicts"] == [{"what": "number", "citations": [1, 2]}]


def test_sources_that_agree_are_no_conflict(state: State) -> None:
    one = Served(state, QuotesAs.ONLY, found=found(SAID, OTHERWISE.replace("sixty", "40")), other="40 ships")
    with one.client:
        body = one.ask()

    assert body["conflicts"] == []
    assert "disagree" not in body["answer"]
    assert QUESTION
