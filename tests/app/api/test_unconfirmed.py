"""POST /v1/ask where nothing the model wrote can be confirmed: the documents' own words follow, quoted and cited."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from app.answering.citing.citation import CONFIRMED
from app.answering.languages.table import REFUSAL
from app.server.state import State
from app.types import Operation
from tests.app.api.pointed_service import pointed_service
from tests.app.api.test_reader import Service

CLAIM = "Ninety zeppelins [1]."
SENTENCE = "The harbour master logged forty ships in May."
QUOTED = f"> {SENTENCE} [2]"
GERMAN = "Wie viele ships hat der harbour master im May logged?"

Serve = Callable[..., Service]


@pytest.fixture
def serve(state: State) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(says: str, *, points_at: str | None = "forty ships", quotes: bool = True) -> Service:
            return stack.enter_context(pointed_service(state, says, points_at=points_at, quote_unverified=quotes))

        yield start


def cited(body: Any) -> list[tuple[str, str, bool]]:
    """Of each footnote its marker in the answer, its passage, and whether it is verified."""
    return [
        (body["answer"][one["answer_start"] : one["answer_end"]], one["cited_text"], one["verified"])
        for one in body["citations"]
    ]


def quoted(body: Any) -> list[str]:
    return [body["answer"][span["start"] : span["end"]] for span in body["quoted_spans"]]


def test_what_the_documents_say_follows_in_a_paragraph_of_its_own(serve: Serve) -> None:
    body = serve(CLAIM).ask()

    assert body["answered"]
    assert body["answer"] == f"{CLAIM}\n\n{QUOTED}"
    (mark, _, verified), quote = cited(body)
    assert (mark, verified) == ("[1]", False)
    assert quote == ("[2]", SENTENCE, body["quoted_spans"][0]["answers"] >= CONFIRMED)
    assert quoted(body) == [SENTENCE]
    assert body["sources"]["cited"] == [one["chunk_id"] for one in body["citations"]]


def test_the_words_that_answer_are_marked_in_the_quote_and_lead_nothing(serve: Serve) -> None:
    body = serve(CLAIM).ask()

    ((mark,),) = [span["highlights"] for span in body["quoted_spans"]]
    assert body["answer"][mark["start"] : mark["end"]] == "forty ships"
    assert body["lead"] is None


def test_the_likeliest_of_several_comes_first(serve: Serve) -> None:
    body = serve(CLAIM, points_at="harbour").ask("Tell me about the harbour and its master.", abstention_threshold=1.0)

    likely = [span["answers"] for span in body["quoted_spans"]]
    assert len(likely) > 1
    assert likely == sorted(likely, reverse=True)


def test_a_sentence_without_a_source_stays_marked_as_one(serve: Serve) -> None:
    body = serve("Ninety zeppelins were sold at auction in Rome.").ask()

    assert [body["answer"][span["start"] : span["end"]] for span in body["uncited_spans"]] == [
        "Ninety zeppelins were sold at auction in Rome."
    ]
    assert quoted(body) == [SENTENCE]


def test_a_streamed_unconfirmed_answer_equals_the_whole_one(serve: Serve) -> None:
    service = serve(CLAIM)

    body, events = service.ask(), service.events()

    assert "".join(data["text"] for name, data in events if name == "delta") == body["answer"]
    assert [data["cited_text"] for name, data in events if name == "citation"] == [
        one["cited_text"] for one in body["citations"]
    ]
    (done,) = [data for name, data in events if name == "done"]
    assert [done[name] for name in ("quoted_spans", "answers", "lead", "parts")] == [
        body[name] for name in ("quoted_spans", "answers", "lead", "parts")
    ]


def test_a_delta_says_that_a_model_writes_its_part_and_the_quotes_behind_it_come_whole(serve: Serve) -> None:
    deltas = [data for name, data in serve(CLAIM).events() if name == "delta"]
    written = "".join(data["text"] for data in deltas if data["part"] == 0)

    assert [data["part"] for data in deltas] == [0] * (len(deltas) - 1) + [None]
    assert written
    assert CLAIM.startswith(written)
    assert deltas[-1]["text"] == f"{CLAIM.removeprefix(written)}\n\n{QUOTED}"


def test_what_the_model_wrote_and_what_is_quoted_are_two_parts(serve: Serve) -> None:
    body = serve(CLAIM).ask()
    (prose, quote) = body["parts"]

    assert (prose["kind"], prose["start"], prose["end"]) == ("prose", 0, len(CLAIM))
    assert (quote["kind"], body["answer"][quote["start"] : quote["end"]]) == ("quote", QUOTED.removeprefix("> "))
    assert (prose["citations"], quote["citations"]) == ([0], [1])
    assert prose["uncited"] == body["uncited_spans"]
    (span,) = body["quoted_spans"]
    assert {**quote["quoted"], "answers": quote["answers"], "highlights": quote["highlights"]} == span


def test_a_strict_answer_of_which_nothing_is_left_is_the_quotes(serve: Serve) -> None:
    service = serve(CLAIM)

    body, events = service.ask(strict=True), service.events(strict=True)

    assert body["answered"]
    assert (body["answer"], body["reason"]) == (QUOTED, None)
    assert cited(body) == [("[2]", SENTENCE, body["answers"] >= CONFIRMED)]
    assert body["answers"] == body["quoted_spans"][0]["answers"]
    assert quoted(body) == [SENTENCE]
    assert "".join(data["text"] for name, data in events if name == "delta") == QUOTED


def test_quotes_in_plain_text_have_quotation_marks(serve: Serve) -> None:
    assert serve(CLAIM).ask(format="text")["answer"] == f"{CLAIM}\n\n“{SENTENCE}” [2]"


@pytest.mark.parametrize(
    ("says", "fields"),
    [
        pytest.param("Forty ships [2].", {}, id="confirmed"),
        pytest.param("Forty ships [2]. Ninety zeppelins [1].", {}, id="confirmed in part"),
        pytest.param(REFUSAL, {}, id="refused"),
        pytest.param(f"{REFUSAL} [2]", {}, id="refused with a marker"),
        pytest.param(REFUSAL, {"strict": True}, id="refused, strict"),
        pytest.param('{"answer": "Ninety zeppelins", "sources": [1]}', {"format": "json"}, id="JSON"),
        pytest.param(CLAIM, {"question": GERMAN, "abstention_threshold": 1.0}, id="in another language"),
    ],
)
def test_confirmed_refused_and_json_answers_get_no_quotes(serve: Serve, says: str, fields: dict[str, Any]) -> None:
    service = serve(says)

    body = service.ask(**fields)

    assert quoted(body) == []
    assert says.partition(" [")[0] in body["answer"]
    assert SENTENCE not in body["answer"]


def test_no_quotes_follow_when_the_setting_is_off(serve: Serve) -> None:
    body = serve(CLAIM, quotes=False).ask()

    assert (body["answer"], body["quoted_spans"]) == (CLAIM, [])


def test_quotes_cost_nothing_more_than_the_pointers(serve: Serve) -> None:
    kept, service = serve(CLAIM, quotes=False), serve(CLAIM)

    quoting, keeping = service.ask(), kept.ask()

    assert [row[0] for row in service.rows(quoting["id"])] == [row[0] for row in kept.rows(keeping["id"])]
    assert quoting["usage"]["completion_tokens"] == keeping["usage"]["completion_tokens"]


def test_without_a_reader_what_is_read_for_it_is_on_the_bill(serve: Serve) -> None:
    service = serve(CLAIM, points_at=None)

    body = service.ask()

    assert quoted(body) == [SENTENCE]
    auxiliary = {found["purpose"]: found["tokens"] for found in body["usage"]["auxiliary"]}
    rows = [(row[0], row[3]) for row in service.rows(body["id"])]
    assert rows.count((Operation.EMBED_QUERY, auxiliary["extract"])) == 1
    assert sum(row[0] is Operation.CHAT for row in service.rows(body["id"])) == 1
