"""app.answering.prepared: how the preparation of an answer is stopped, and shared by further answers."""

import time
from dataclasses import replace
from typing import cast

import pytest

from app.answering.answer import Budget, SourceReport
from app.answering.calls import RunningCall, Settler
from app.answering.prepared import PreparationCost, Prepared
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.answering.quoting.quotes import Quote, Selection
from app.answering.token_usage import ModelCall, Purpose
from app.types import Principal, Role
from generation.ports import Stream
from retrieval.types import Context, Scope, Span
from tests.app.answering.sources import source

SEARCHED = ModelCall(purpose=Purpose.EMBED_QUERY, model="e", prompt_tokens=4)
CHOSEN = ModelCall(purpose=Purpose.EXTRACT, model="e", prompt_tokens=6)


def prepared(*, deadline: float | None = None) -> Prepared:
    question = Question(
        request_id="req_1",
        endpoint="ask",
        principal=Principal("t1", "u1", "k1", Role.MEMBER),
        text="Why?",
        scope=Scope(tenant_id="t1"),
        deadline=deadline,
    )
    context = Context(sources=(), dropped=(), tokens=0)
    return Prepared(
        question=question,
        context=context,
        prompt=Prompt(segments=()),
        report=SourceReport.of((), context),
        budget=Budget(64, 8, 0),
        cost=PreparationCost(started=time.perf_counter(), retrieve_ms=0.0),
    )


class Leaving:
    """A settler that hears of a client's leaving, and the stream that is closed then."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def client_left(self) -> None:
        self.heard.append("client")

    def close(self) -> None:
        self.heard.append("closed")


@pytest.mark.parametrize(
    ("deadline_in", "heard"), [(None, ["client", "closed"]), (60.0, ["client", "closed"]), (-0.1, ["closed"])]
)
def test_what_is_closed_after_its_deadline_is_our_abort_and_not_the_clients(
    deadline_in: float | None, heard: list[str]
) -> None:
    open_ = prepared(deadline=None if deadline_in is None else time.monotonic() + deadline_in)
    leaving = Leaving()
    call = RunningCall(cast(Stream, leaving), cast(Settler, leaving))

    replace(open_, call=call).close()

    assert leaving.heard == heard


def test_a_further_answer_costs_nothing_for_its_sources_and_has_no_call_yet() -> None:
    leaving = Leaving()
    first = replace(
        prepared(),
        cost=PreparationCost(started=1.0, retrieve_ms=2.0, rerank_ms=3.0, calls=(SEARCHED,)),
        call=RunningCall(cast(Stream, leaving), cast(Settler, leaving)),
        selection=Selection((), 0.5, "answered", decides=True, calls=(CHOSEN,)),
    )

    further = first.again(1)

    assert (further.question.run_id, further.call) == ("req_1.1", None)
    assert further.cost == PreparationCost(started=1.0, retrieve_ms=2.0, rerank_ms=3.0)
    assert further.selection == Selection((), 0.5, "answered", decides=True)


def test_the_answer_consists_of_quotes_where_quotes_answer_and_there_are_some() -> None:
    shown = source("Rain fell.")
    some = Selection((Quote(shown, Span(0, 10), "Rain fell.", 0.5),), 0.5, "answered")
    none = Selection((), 0.1, "refused")

    assert replace(prepared(), by_quotes=True, selection=some).quotes
    assert not replace(prepared(), by_quotes=True, selection=none).quotes
    assert not replace(prepared(), by_quotes=True).quotes
    assert not replace(prepared(), selection=some).quotes
