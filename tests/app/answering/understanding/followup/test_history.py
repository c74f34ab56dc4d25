"""app.answering.understanding.followup.history: the rules read the newest part of a conversation, in linear time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.languages.noun_phrases import names
from app.answering.question import Message
from app.answering.understanding.followup.antecedents import Exchange
from app.answering.understanding.followup.continuation import goes_on
from app.answering.understanding.followup.history import HISTORY_CHARACTERS, newest
from app.answering.understanding.followup.rules import exchanges_of, stand_alone
from tests.patterns.growth import assert_linear, seconds

SIZES = (1_250, 2_500, 5_000, 10_000)
PIECES = ["Alpha. ", "Alpha ", "It. ", "Ab1. ", "the A B. ", "of the ", "A of of ", "\n ", "A-b'c "]
FOLLOW_UPS = ["When did it open?", "What about his name?", "What did that company buy in that year?", "Why?"]
TOWER = Exchange("When was the Eiffel Tower built?", "It was built in 1889 [1].")


def filled(piece: str, size: int) -> str:
    return (piece * size)[:size]


@pytest.mark.parametrize("piece", PIECES)
def test_names_are_found_in_linear_time(piece: str) -> None:
    assert_linear(lambda size: names(filled(piece, size)), SIZES)


@pytest.mark.parametrize(("asked", "piece"), list(zip(FOLLOW_UPS * 3, PIECES, strict=False)))
def test_a_follow_up_costs_little_however_long_the_conversation_is(asked: str, piece: str) -> None:
    def understand(size: int) -> None:
        text = filled(piece, size)
        stand_alone(asked, exchanges_of([Message("user", text), Message("assistant", text)]))
        goes_on(asked, stand_alone(asked, [Exchange(TOWER.question, text, text)] * 4), Exchange("", text, text))

    assert_linear(understand, SIZES)


def test_many_short_messages_cost_little_too() -> None:
    messages = [Message("user", "And he?"), Message("assistant", "")] * 5_000

    assert seconds(lambda: exchanges_of(messages)) < 1


def test_a_reference_is_resolved_in_spite_of_a_long_history() -> None:
    long = filled("Alpha. ", 10_000)
    messages = [Message("user", long), Message("assistant", long)]
    messages += [Message("user", TOWER.question), Message("assistant", TOWER.answer)]

    assert stand_alone("Who designed it?", exchanges_of(messages)) == "Who designed the Eiffel Tower?"


def test_of_a_long_answer_the_beginning_is_read() -> None:
    answer = "Zoë Müller. " + filled("She signed the papers. ", 10_000)
    messages = [Message("user", "Who bought the plant?"), Message("assistant", answer)]

    assert stand_alone("How old is she?", exchanges_of(messages)) == "How old is Zoë Müller?"


exchange = st.builds(Exchange, *[st.integers(0, 3_000).map("x".__mul__)] * 3)


@given(st.lists(exchange, min_size=1, max_size=40))
def test_the_rules_read_the_newest_characters_and_all_of_a_short_conversation(exchanges: list[Exchange]) -> None:
    read = newest(exchanges)
    parts = [(one.question, one.answer, one.cited) for one in read]

    assert sum(len(text) for part in parts for text in part) <= HISTORY_CHARACTERS
    assert read[-1].question == exchanges[-1].question
    for one, whole in zip(reversed(read), reversed(exchanges), strict=False):
        assert one.question == whole.question
        assert whole.answer.startswith(one.answer)
        assert whole.cited.startswith(one.cited)
    if sum(len(one.question + one.answer + one.cited) for one in exchanges) <= HISTORY_CHARACTERS:
        assert read == exchanges[-32:]
