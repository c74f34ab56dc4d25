"""Drafted questions are kept only where asking them finds their own sentence, in everything and alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.answering.citing.citation import CONFIRMED
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.states.reading import Extract, QuoteConflict, Selection
from app.suggestions.checking import MOST_KEPT, MOST_TRIED, DocumentCheck, Suggestion, checked
from app.suggestions.drafting import Proposal
from retrieval.types import Hit, Scores, Source, Span
from tests.app.answering.metered import meter_of
from tests.app.answering.retrieving.outlined import question
from tests.app.suggestions.test_drafting import chunk

TEXT = "The ferry was built in 1987. " * 20
SENTENCE, ANSWER = Span(0, 28), Span(23, 27)
ASKING = question("", endpoint="overview")


def proposal(text: str = "When was the ferry built?", at: int = 0) -> Proposal:
    moved = 29 * at
    return Proposal(
        text,
        Span(SENTENCE.start_char + moved, SENTENCE.end_char + moved),
        Span(ANSWER.start_char + moved, ANSWER.end_char + moved),
        "time",
    )


def selection(
    *, score: float = 0.97, span: Span = SENTENCE, highlight: Span | None = ANSWER, outcome: str = "answered"
) -> Selection:
    found = chunk(TEXT)
    source = Source(1, Hit(found, Scores(fused=1.0)), (Span(0, len(TEXT)),), "", TEXT, 1, compressed=False)
    quote = Extract(source, span, TEXT[span.start_char : span.end_char], score, highlight)
    return Selection((quote,), score, outcome)  # type: ignore[arg-type]


def check(
    answers: Callable[[Question], Selection | None],
    *proposals: Proposal,
    document: str = "doc_1",
    alone: bool = False,
    whole: str = "",
    stopping: Callable[[], bool] = lambda: False,
    on_kept: Callable[[tuple[Suggestion, ...]], None] = lambda _: None,
) -> tuple[tuple[Suggestion, ...], list[Question]]:
    asked: list[Question] = []

    def select(question: Question, /, *, meter: Meter) -> Selection | None:
        asked.append(question)
        return answers(question)

    document_check = DocumentCheck(ASKING, document, select=select, meter_of=meter_of)
    found = checked(
        proposals or (proposal(),),
        check=document_check,
        alone=alone,
        about=document_check.about(whole) if whole else None,
        stopping=stopping,
        on_kept=on_kept,
    )
    return found, asked


def test_a_question_is_asked_of_everything_and_of_the_document_alone() -> None:
    kept, asked = check(lambda _: selection())

    assert kept == (Suggestion("When was the ferry built?", SENTENCE, "1987"),)
    assert [one.scope.document_ids for one in asked] == [None, ("doc_1",)]
    assert [one.text for one in asked] == ["When was the ferry built?"] * 2


def test_the_calls_of_each_question_have_a_number_of_their_own() -> None:
    _, asked = check(lambda _: selection(), proposal(), proposal("When was it?", 3))

    assert len({one.run_id for one in asked}) == len(asked) == 3
    assert {one.request_id for one in asked} == {"req_1"}


def test_where_nothing_else_may_be_read_it_is_asked_once() -> None:
    kept, asked = check(lambda _: selection(), alone=True)

    assert (len(kept), len(asked)) == (1, 1)


def test_it_is_not_kept_unless_it_is_answered_with_its_own_sentence_first() -> None:
    for answered in (
        None,
        selection(outcome="unsure"),
        selection(span=Span(58, 86), highlight=Span(81, 85)),
        selection(highlight=None),
        selection(highlight=Span(4, 9)),
    ):
        assert check(lambda _, answered=answered: answered)[0] == ()  # type: ignore[misc]
    assert check(lambda _: selection(), document="doc_2")[0] == ()


def test_it_is_not_kept_where_the_document_alone_is_answered_otherwise() -> None:
    other = selection(span=Span(58, 86), highlight=Span(81, 85))
    kept, _ = check(lambda asked: selection() if asked.scope.document_ids is None else other)

    assert kept == ()


@pytest.mark.parametrize(("everywhere", "alone"), [(0.97, 0.5), (0.5, 0.97), (CONFIRMED - 0.01, CONFIRMED - 0.01)])
def test_one_that_is_not_confirmed_both_times_is_told_apart(everywhere: float, alone: float) -> None:
    kept, _ = check(lambda asked: selection(score=everywhere if asked.scope.document_ids is None else alone))

    assert kept == (Suggestion("When was the ferry built?", SENTENCE, "1987", confirmed=False),)


@pytest.mark.parametrize("disagrees", ["everywhere", "alone"])
def test_one_whose_sources_disagree_is_not_confirmed_however_likely(disagrees: str) -> None:
    """The page confirms no footnote of such an answer."""

    def answer(asked: Question) -> Selection:
        at = "everywhere" if asked.scope.document_ids is None else "alone"
        return replace(selection(), conflict=QuoteConflict("date", 0, 1) if at == disagrees else None)

    assert [one.confirmed for one in check(answer)[0]] == [False]


def test_the_confirmed_go_first_and_leave_no_room_for_others_of_their_sentence() -> None:
    def answer(asked: Question) -> Selection:
        at = 29 * int(asked.text.split()[1])
        score = 0.97 if asked.text.endswith("sure") else 0.6
        return selection(score=score, span=Span(at, at + 28), highlight=Span(at + 23, at + 27))

    asked = [proposal(text, int(text.split()[1])) for text in ("When 0", "When 1", "When 1 sure", "When 2 sure")]
    told: list[list[str]] = []
    kept, _ = check(answer, *asked, on_kept=lambda so_far: told.append([one.question for one in so_far]))

    assert [(one.question, one.confirmed) for one in kept] == [
        ("When 1 sure", True), ("When 2 sure", True), ("When 0", False)
    ]  # fmt: skip
    assert told == [["When 1 sure"], ["When 1 sure", "When 2 sure"]]


def test_where_fewer_than_three_are_left_the_document_is_asked_what_it_is_about() -> None:
    whole = "What is this document about?"
    kept, asked = check(lambda one: selection(score=0.95, highlight=None) if one.text == whole else None, whole=whole)

    assert kept == (Suggestion(whole, SENTENCE, TEXT[SENTENCE.start_char : SENTENCE.end_char]),)
    assert [one.scope.document_ids for one in asked if one.text == whole] == [("doc_1",)]
    assert len({one.run_id for one in asked}) == len(asked)
    for refused in (None, selection(outcome="unsure")):
        assert check(lambda _, refused=refused: refused, whole=whole)[0] == ()  # type: ignore[misc]


def test_what_the_document_is_about_goes_before_what_is_not_confirmed() -> None:
    whole = "What is it about?"

    def answer(asked: Question, *, about: float) -> Selection:
        if asked.text == whole:
            return selection(score=about, highlight=None)
        at = 29 * int(asked.text.split()[1])
        score = 0.97 if asked.text.endswith("sure") else 0.6
        return selection(score=score, span=Span(at, at + 28), highlight=Span(at + 23, at + 27))

    asked = [proposal(text, int(text.split()[1])) for text in ("When 0", "When 1", "When 2 sure", "When 3")]
    kept = [
        [one.question for one in check(lambda one: answer(one, about=about), *asked, whole=whole)[0]]  # noqa: B023 it is called at once
        for about in (0.95, 0.6)
    ]

    assert kept == [["When 2 sure", whole, "When 0"], ["When 2 sure", "When 0", "When 1"]]


def test_what_it_is_about_gives_way_to_three_that_are_confirmed() -> None:
    whole = "What is it about?"

    def answer(asked: Question) -> Selection:
        if asked.text == whole:
            return selection(highlight=None)
        at = 29 * int(asked.text.split()[-1])
        return selection(span=Span(at, at + 28), highlight=Span(at + 23, at + 27))

    shown: list[list[str]] = []
    kept, asked = check(
        answer,
        *[proposal(f"When {at}", at) for at in range(3)],
        whole=whole,
        on_kept=lambda so_far: shown.append([one.question for one in so_far]),
    )

    assert asked[0].text == whole
    assert shown == [["When 0", whole], ["When 0", "When 1", whole], ["When 0", "When 1", "When 2"]]
    assert [one.question for one in kept] == shown[-1]


def test_at_most_three_are_kept_none_of_the_same_sentence() -> None:
    def answer(asked: Question) -> Selection:
        at = 29 * int(asked.text.split()[-1])
        return selection(span=Span(at, at + 28), highlight=Span(at + 23, at + 27))

    many = [proposal(f"When {at}", at) for at in (0, 0, 1, 2, 3, 4)]
    told: list[int] = []
    kept, _ = check(answer, *many, on_kept=lambda so_far: told.append(len(so_far)))

    assert [one.question for one in kept] == ["When 0", "When 1", "When 2"]
    assert len(kept) == MOST_KEPT
    assert told == [1, 2, 3]


def test_no_more_than_the_most_are_asked() -> None:
    _, asked = check(lambda _: None, *[proposal(f"When {at}?", at) for at in range(MOST_TRIED + 5)])

    assert len(asked) == MOST_TRIED


def test_nothing_more_is_asked_once_the_server_stops() -> None:
    _, asked = check(lambda _: selection(), stopping=lambda: True)

    assert asked == []
