"""The judge of candidates: what it reads, when it is asked, and what its scores change."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.answering.metering.token_usage import Purpose
from app.answering.quoting.breadth import ONE, SEVERAL, Breadth
from app.answering.quoting.candidates import candidates_of, judged_texts
from app.answering.states.reading import Selection
from app.types import DocumentShare
from retrieval.compress import compress
from retrieval.judge_layout import JudgedText
from retrieval.types import Context
from tests.app.answering.comparing_judge import ComparingJudge
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.quoting.selecting import selected
from tests.app.answering.sources import source
from tests.retrieval.fakes import ranked

ASKED = "When was the plant in Oslo closed?"
CLOSED, OPENED = "The plant in Oslo closed on 4 May.", "The plant in Oslo opened on 5 June."
MANY = " ".join(f"The plant in Oslo closed gate {at} on {at} May." for at in range(1, 31))


def context(*texts: str) -> Context:
    def count(text: str) -> int:
        return len(text.split())

    return compress(ranked(*texts), query="", budget=1000, count_tokens=count, order=lambda one: list(range(len(one))))


def select(judge: ComparingJudge | None, *texts: str, reads: str = "on", breadth: Breadth = ONE) -> Selection:
    reader = PointingReader(reads) if reads else None
    return selected(ASKED, context(*texts), reader, judge=judge, breadth=breadth)


@pytest.mark.parametrize("right", [CLOSED, OPENED])
def test_what_the_judge_is_for_is_quoted_first(right: str) -> None:
    selection = select(ComparingJudge(right), CLOSED, OPENED)

    assert selection.quotes[0].text == right


def test_what_the_judge_is_against_is_less_likely() -> None:
    against = select(ComparingJudge("no such words"), CLOSED, OPENED)
    without = select(None, CLOSED, OPENED)
    in_favour = select(ComparingJudge(CLOSED), CLOSED, OPENED)

    assert against.score < without.score
    assert against.score < in_favour.score


@pytest.mark.parametrize("breadth", [ONE, SEVERAL])
def test_only_the_likeliest_candidates_are_compared_and_the_others_count_as_the_least_of_them(
    breadth: Breadth,
) -> None:
    judge = ComparingJudge("gate")
    selection = select(judge, MANY, breadth=breadth)

    assert len(judge.candidates) == breadth.judged < breadth.embedded == len(selection.probabilities)
    # The judge is for all that it compares, so that none of the others changes places with another.
    without = select(None, MANY, breadth=breadth)
    likeliest = max(range(breadth.embedded), key=lambda at: selection.probabilities[at][2])
    assert likeliest == max(range(breadth.embedded), key=lambda at: without.probabilities[at][2])


def test_nothing_is_compared_that_no_reader_has_read() -> None:
    judge = ComparingJudge(OPENED)
    german = selected("Wann wurde das Werk in Oslo geschlossen?", context(CLOSED), PointingReader("on"), judge=judge)

    assert select(judge, CLOSED, OPENED, reads="") == select(None, CLOSED, OPENED, reads="")
    assert not german.decides
    assert judge.candidates == []


def test_a_comparison_is_metered_once_with_the_tokens_that_are_read() -> None:
    judge, reader = ComparingJudge(CLOSED), PointingReader("on")
    metered: list[tuple[Purpose, str, int, int]] = []

    @contextmanager
    def metering(
        purpose: Purpose, model: str, revision: str, tokens: int, *, documents: tuple[DocumentShare, ...] = ()
    ) -> Iterator[None]:
        del documents
        metered.append((purpose, f"{model}@{revision}", tokens, len(judge.candidates)))
        yield

    selected(ASKED, context(CLOSED, OPENED), reader, judge=judge, metering=metering)

    assert [purpose for purpose, *_ in metered] == [Purpose.LOCATE, Purpose.EXTRACT, Purpose.COMPARE]
    tokens = judge.count_tokens(ASKED, judge.candidates)
    assert metered[-1] == (Purpose.COMPARE, "comparing@j1", tokens, 0)


def test_the_judge_reads_what_stands_above_a_candidate_and_the_sentence_before_it() -> None:
    shown = source("It closed. Nobody was hurt.\n\nIt opened again.", heading="The plant")
    texts = judged_texts(candidates_of([shown]))

    assert [(one.before, one.text) for one in texts] == [
        ("", "It closed."),
        ("It closed.", "Nobody was hurt."),
        ("Nobody was hurt.", "It opened again."),
    ]
    assert {one.above for one in texts} == {"The plant"}
    assert judged_texts(()) == [] and JudgedText("", "", "x") not in texts
