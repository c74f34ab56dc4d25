"""app.answering.calls writes what the engine reports to the call's ledger row."""

from dataclasses import replace

import pytest

from app.answering.calls import CallNumber, Calls, Settler
from app.answering.question import Question
from app.types import Components, Operation, Principal, Reservation, Role
from app.usage.ledger.ledger import Ledger
from generation.types import Completion, FinishReason, Timings
from retrieval.types import Scope
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]


@pytest.fixture
def ledger(sqlite_database):
    ledger = Ledger(sqlite_database, boot_id="boot_1")
    ledger.reserve(
        Reservation(
            event_id="req_1:2",
            request_id="req_1",
            operation=Operation.CHAT,
            principal=Principal("t1", "u1", "k1", Role.MEMBER),
            endpoint="ask",
            model="m",
            tokenizer_revision="r",
            input_tokens=10,
            max_output_tokens=8,
            components=Components(template=4, question=6),
        )
    )
    return ledger


def completion(reason: FinishReason) -> Completion:
    return Completion("req_1", "text", (1, 2, 3), reason, 10, 0, 2, Timings(1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("reason", "left", "status"),
    [
        (FinishReason.STOP, False, "completed"),
        (FinishReason.LENGTH, False, "completed"),
        (FinishReason.STOP, True, "completed"),
        (FinishReason.CANCELLED, True, "client_abort"),
        (FinishReason.CANCELLED, False, "server_abort"),
        (FinishReason.DEADLINE, False, "server_abort"),
        (FinishReason.ERROR, False, "error"),
    ],
)
def test_how_it_ended_is_on_the_row_with_what_was_generated_and_delivered(ledger, reason, left, status):
    settler = Settler(ledger, "req_1:2")
    if left:
        settler.client_left()
    settler.checkpoint("req_1", 2)
    settler.finish(completion(reason))
    (row,) = ledger.usage("req_1")

    assert (row.status, row.output_tokens, row.delivered_tokens, row.input_tokens) == (status, 3, 2, 10)


@pytest.mark.parametrize(
    ("counted", "components"),
    [
        (0, Components()),
        (12, Components(template=6, question=6)),
        (7, Components(template=1, question=6)),
        (5, Components(template=4, question=6)),  # fewer than the question alone: not to be believed
    ],
)
def test_an_input_that_another_server_counted_still_adds_up(ledger, counted, components):
    ended = completion(FinishReason.STOP)
    Settler(ledger, "req_1:2").finish(replace(ended, prompt_tokens=counted))
    (row,) = ledger.usage("req_1")

    assert (row.components, row.input_tokens) == (components, components.total)


def test_what_the_server_says_it_generated_is_what_is_billed(ledger):
    Settler(ledger, "req_1:2").finish(replace(completion(FinishReason.STOP), reported_tokens=5))
    (row,) = ledger.usage("req_1")

    assert row.output_tokens == 5


def test_call_numbers_name_rows_by_their_digits():
    assert [f"req_1:{number}" for number in CallNumber][:5] == [f"req_1:{number}" for number in range(5)]
    assert len(set(CallNumber)) == len(CallNumber.__members__), "no two kinds of calls share a number"


def test_a_stopped_call_is_the_clients_abort_unless_the_deadline_passed_or_the_server_stops():
    question = Question(
        request_id="req_1",
        endpoint="ask",
        principal=Principal("t1", "u1", "k1", Role.MEMBER),
        text="When?",
        scope=Scope(tenant_id="t1"),
    )
    by_client, late, stopping = Calls(question), Calls(replace(question, deadline=0.0)), Calls(question)
    stopping.server_stops()

    assert [calls.aborted for calls in (by_client, late, stopping)] == ["client_abort", "server_abort", "server_abort"]
