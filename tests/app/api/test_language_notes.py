"""POST /v1/ask in another language than the documents: a refusal that a model wrote says so, as quotes do."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.answering.languages.table import languages
from app.server.state import State
from tests.app.api.pointed_service import pointed_service
from tests.app.api.test_reader import QUESTION, Service

GERMAN = "Wie viele Schiffe hat der Hafenmeister im Mai gezählt?"
NOTE = languages()["de"].texts.other_language.format(language="English")
REFUSAL = languages()["de"].texts.refusal


@pytest.fixture
def service(state: State) -> Iterator[Service]:
    with pointed_service(state, REFUSAL) as service:
        yield service


def ask(service: Service, question: str = GERMAN, **fields: Any) -> Any:
    """The answer, which the model is asked for however unlikely the reader finds one."""
    body = service.ask(question, abstention_threshold=1.0, **fields)
    assert service.engine.requests
    return body


@pytest.mark.parametrize(
    ("says", "fields", "reason"),
    [
        (REFUSAL, {}, "not_in_sources"),
        (f"{REFUSAL} [1]", {}, "not_in_sources"),
        (REFUSAL, {"format": "text"}, "not_in_sources"),
        ("Neunzig Zeppeline wurden in Rom versteigert.", {"strict": True}, "not_verified"),
    ],
    ids=["refused", "with a marker", "plain text", "withheld"],
)
def test_a_refusal_that_a_model_wrote_is_followed_by_the_note(
    service: Service, says: str, fields: dict[str, Any], reason: str
) -> None:
    service.engine.says = says
    body = ask(service, **fields)

    assert (body["answered"], body["reason"]) == (False, reason)
    assert body["answer"].startswith(REFUSAL)
    assert body["answer"].endswith(f"\n\n{NOTE}")
    refused, said = body["parts"]
    assert (refused["kind"], refused["start"], refused["reason"]) == ("refusal", 0, reason)
    assert (said["kind"], said["code"], said["language"]) == ("note", "other_language", "English")
    assert body["answer"][said["start"] : said["end"]] == NOTE


def test_it_is_streamed_too(service: Service) -> None:
    events = service.events(GERMAN, abstention_threshold=1.0)

    deltas = [data for name, data in events if name == "delta"]
    assert "".join(data["text"] for data in deltas) == f"{REFUSAL}\n\n{NOTE}"
    assert REFUSAL.startswith("".join(data["text"] for data in deltas if data["part"] == 0))
    assert deltas[-1]["part"] is None
    assert NOTE in deltas[-1]["text"]


@pytest.mark.parametrize(
    ("question", "says", "fields"),
    [
        (GERMAN, "Vierzig Schiffe [2].", {}),
        (QUESTION, "I don't know.", {}),
        (GERMAN, '{"answer": "", "sources": []}', {"format": "json"}),
    ],
    ids=["answered", "one language", "JSON"],
)
def test_other_answers_have_no_note(service: Service, question: str, says: str, fields: dict[str, Any]) -> None:
    service.engine.says = says

    assert ask(service, question, **fields)["answer"] == says
