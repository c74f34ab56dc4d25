"""app.answering.answers.answer.Words: what became of a language model's words is told by how the answer ended."""

import pytest

from app.answering.answers.answer import AbstentionReport, Stage, Words, WordsState
from app.answering.answers.parts import Reason
from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage
from app.types import Components


def usage(*purposes: Purpose) -> TokenUsage:
    """The usage of calls that wrote three tokens each."""
    calls = tuple(ModelCall(purpose=one, model="m", prompt_tokens=9, completion_tokens=3) for one in purposes)
    return TokenUsage(components=Components(), by_document={}, calls=calls)


@pytest.mark.parametrize(
    ("stage", "reason", "state", "why"),
    [
        (None, None, WordsState.SHOWN, None),
        (None, Reason.CANCELLED, WordsState.SHOWN, None),
        ("model", Reason.NOT_IN_SOURCES, WordsState.SHOWN, None),
        ("model", Reason.UNSURE, WordsState.WITHHELD, Reason.NOT_IN_SOURCES),
        ("verifier", Reason.NOT_VERIFIED, WordsState.WITHHELD, Reason.NOT_VERIFIED),
    ],
)
def test_words_are_shown_unless_something_is_shown_in_their_place(
    stage: Stage | None, reason: Reason | None, state: WordsState, why: Reason | None
) -> None:
    found = Words.of(usage(Purpose.LOCATE, Purpose.ANSWER), AbstentionReport(stage), reason)
    assert found == Words(state, why)


@pytest.mark.parametrize("reason", [None, Reason.UNSURE, Reason.NO_EVIDENCE])
def test_without_a_call_that_answers_there_are_none(reason: Reason | None) -> None:
    assert Words.of(usage(Purpose.REWRITE), AbstentionReport("reader"), reason) == Words(WordsState.NONE)
    assert Words.of(usage(), AbstentionReport(), None) == Words(WordsState.NONE)
