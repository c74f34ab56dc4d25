"""app.answering.prepared: how the preparation of an answer is stopped, and shared by further answers."""

import time
from dataclasses import replace
from typing import cast

from app.answering.answer import Budget, SourceReport
from app.answering.metering.token_usage import Purpose
from app.answering.prepared import PreparationCost, Prepared, Rest
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.answering.quoting.quotes import Quote, Selection
from app.types import Principal, Role
from generation.ports import Stream
from retrieval.types import Context, Scope, Span
from tests.app.answering.metered import meter_of
from tests.app.answering.sources import source


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
        meter=meter_of(question),
        context=context,
        prompt=Prompt(segments=()),
        report=SourceReport.of((), context),
        budget=Budget(64, 8, 0),
        cost=PreparationCost(started=time.perf_counter(), retrieve_ms=0.0),
    )


class Closed:
    """A stream, or what is still being prepared, that hears of its end."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def close(self) -> None:
        self.heard.append("closed")


def test_closing_it_ends_its_calls_and_what_is_still_being_prepared() -> None:
    rest = Closed()
    open_ = replace(prepared(), rest=cast(Rest, rest))

    open_.close()

    assert (open_.meter.closed, rest.heard) == (True, ["closed"])


def test_a_further_answer_costs_nothing_for_its_sources_and_has_no_call_yet() -> None:
    first = replace(
        prepared(),
        cost=PreparationCost(started=1.0, retrieve_ms=2.0, rerank_ms=3.0),
        stream=cast(Stream, Closed()),
        selection=Selection((), 0.5, "answered", decides=True),
    )
    with first.meter.reading(Purpose.EMBED_QUERY, model="e", revision="1", tokens=4):
        pass

    further = first.again(1)

    assert (further.question.run_id, further.stream) == ("req_1.1", None)
    assert (len(first.meter.calls), further.meter.calls) == (1, ())
    assert (further.cost, further.selection) == (first.cost, first.selection)


def test_the_answer_consists_of_quotes_where_quotes_answer_and_there_are_some() -> None:
    shown = source("Rain fell.")
    some = Selection((Quote(shown, Span(0, 10), "Rain fell.", 0.5),), 0.5, "answered")
    none = Selection((), 0.1, "refused")

    assert replace(prepared(), by_quotes=True, selection=some).quotes
    assert not replace(prepared(), by_quotes=True, selection=none).quotes
    assert not replace(prepared(), by_quotes=True).quotes
    assert not replace(prepared(), selection=some).quotes
