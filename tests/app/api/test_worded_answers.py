"""POST /v1/ask where a better model words the answer: quotes come first; where it refuses they are the nearest."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from app.answering.generating.model_class import ModelClass
from app.answering.languages.table import REFUSAL
from app.server.state import State
from tests.app.api.pointed_service import pointed_service
from tests.app.api.test_reader import Service

SENTENCE = "The harbour master logged forty ships in May."
WORDED = "Forty ships were logged in May by the harbour master."
DENIED = "The sources do not mention how many ships came."

Serve = Callable[..., Service]


@pytest.fixture
def serve(state: State) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(says: str, *, model_class: ModelClass = ModelClass.WRITER, sure: bool = False) -> Service:
            serving = pointed_service(
                state, says, quote_unverified=True, model_class=model_class, sure_quotes_answer=sure
            )
            return stack.enter_context(serving)

        yield start


def named(events: list[tuple[str, Any]], name: str) -> list[Any]:
    return [data for event, data in events if event == name]


@pytest.mark.parametrize("model_class", [ModelClass.WRITER, ModelClass.STRONG])
def test_quotes_come_before_the_first_word_and_are_no_part_of_the_answer(serve: Serve, model_class: ModelClass) -> None:
    events = serve(WORDED, model_class=model_class).events()

    assert list(dict.fromkeys(name for name, _ in events))[:3] == ["sources", "quotes", "delta"]
    (quotes,), (done,) = named(events, "quotes"), named(events, "done")
    assert SENTENCE in quotes["answer"]
    assert quotes["answered"]
    assert [part["kind"] for part in quotes["parts"]][-1] == "quote"
    assert {one["cited_text"] for one in quotes["citations"]} == {SENTENCE}
    for one in quotes["citations"]:
        assert quotes["answer"][one["answer_start"] : one["answer_end"]] == f"[{one['index']}]"
    text = "".join(data["text"] for data in named(events, "delta"))
    assert text.startswith(WORDED)
    assert done["answered"]
    assert done["parts"][0]["kind"] == "prose"
    assert [one["words"] for one in (quotes, done)] == [
        {"state": "waiting", "reason": None},
        {"state": "shown", "reason": None},
    ]


def test_a_whole_answer_is_what_the_stream_ends_as(serve: Serve) -> None:
    service = serve(WORDED)

    body, events = service.ask(), service.events()

    assert "".join(data["text"] for data in named(events, "delta")) == body["answer"]
    (done,) = named(events, "done")
    assert [done[name] for name in ("parts", "answers", "lead")] == [
        body[name] for name in ("parts", "answers", "lead")
    ]


@pytest.mark.parametrize("says", [REFUSAL, DENIED])
def test_where_the_model_refuses_the_quotes_are_the_nearest_passages(serve: Serve, says: str) -> None:
    service = serve(says)
    body, events = service.ask(), service.events()

    (quotes,), (done,) = named(events, "quotes"), named(events, "done")
    assert quotes["answered"]
    assert (body["answered"], body["reason"], body["lead"]) == (False, "unsure", None)
    assert body["abstention"]["stage"] == "model"
    assert body["answer"] == "".join(data["text"] for data in named(events, "delta"))
    assert SENTENCE in body["answer"]
    assert says not in body["answer"]
    assert not any(one["verified"] for one in body["citations"])
    assert done["parts"] == body["parts"]
    assert body["usage"]["completion_tokens"] > 0  # what was withheld is on the bill
    assert body["words"] == done["words"] == {"state": "withheld", "reason": "not_in_sources"}


def test_a_model_that_is_pointed_at_quotes_has_no_event_of_its_own_for_them(serve: Serve) -> None:
    events = serve(WORDED, model_class=ModelClass.QUOTES).events()

    assert named(events, "quotes") == []


def test_the_prompt_holds_the_likeliest_passage_first_and_points_at_nothing(serve: Serve) -> None:
    service = serve(WORDED)
    body = service.ask()

    assert "Possible answer:" not in service.prompt()
    assert service.prompt().index(SENTENCE) < service.prompt().index("[2] a.txt")
    assert body["citations"][0]["index"] == 1


def test_a_writer_is_not_asked_where_quotes_surely_answer_in_a_few_words(serve: Serve) -> None:
    service = serve(WORDED, sure=True)
    body, events = service.ask(), service.events()

    assert body["answered"]
    assert [part["kind"] for part in body["parts"]] == ["lead", "quote"]
    assert SENTENCE in body["answer"]
    assert body["words"] == {"state": "none", "reason": None}
    assert (body["usage"]["completion_tokens"], body["usage"]["components"]["completion"]) == (0, 0)
    assert service.engine.requests == []
    (done,) = named(events, "done")
    assert named(events, "quotes") == []
    assert "".join(data["text"] for data in named(events, "delta")) == body["answer"]
    assert done["parts"] == body["parts"]


def test_a_writer_words_what_asks_for_a_reason(serve: Serve) -> None:
    service = serve(WORDED, sure=True)

    body = service.ask("Why did the harbour master log forty ships?")

    assert body["answer"].startswith(WORDED)
    assert len(service.engine.requests) == 1
