"""app.tuning.pointing: what examples are pointed at stands in the sources, and is right as often as it says."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.tuning.examples import Example, Statement
from app.tuning.pointing import Mixture, Pointing
from retrieval.types import Context
from tests.app.sources import source

OPENED = "The city hall of Oslo was opened in the year 1950 by Arnstein Arneberg and Magnus Poulsson."
FERRIES = "The largest ferry of the harbour carries nine hundred people to Nesodden every hour of the day."
SHORT = Example("When?", (Statement("1950", "a"),), ("a",), pointed=(Statement("1950", "a"),))
SENTENCE = Statement(OPENED.rstrip("."), "a")
OPEN = Example("Tell me about Oslo.", (SENTENCE,), ("a",), pointed=(SENTENCE,))
OTHER = Statement(FERRIES.rstrip("."), "b")
FERRY = Example("Tell me about ferries.", (OTHER,), ("b",), pointed=(OTHER,))
NUMBERS = {"a": 1, "b": 2}
ALWAYS = Mixture(pointed=1.0, stray=0.0, misled=1.0)


def context() -> Context:
    return Context((source(OPENED), source(FERRIES, number=2)), (), 0)


def drawn(example: Example, mixture: Mixture, *, seed: int = 1, room: int = 1000, asked: tuple[Example, ...] = ()):
    pointing = Pointing(random.Random(seed), room=room, count_tokens=len, mixture=mixture)
    return pointing.at(example, context(), NUMBERS, (example, *asked))


def test_an_answer_is_pointed_at_where_it_stands() -> None:
    (pointer,) = drawn(SHORT, ALWAYS)

    assert (pointer.number, pointer.line) == (1, " 1950 [1]")
    assert OPENED[pointer.span.start_char : pointer.span.end_char] == "1950"


def test_a_sentence_is_pointed_at_whole_with_its_full_stop() -> None:
    (pointer,) = drawn(OPEN, ALWAYS)

    assert pointer.line == f" {OPENED} [1]"


def test_an_open_question_may_be_pointed_at_a_sentence_that_does_not_answer_it_too() -> None:
    lines = {pointer.line for pointer in drawn(OPEN, replace(ALWAYS, stray=1.0), asked=(FERRY, SHORT))}

    assert lines == {f" {OPENED} [1]", f" {FERRIES} [2]"}
    assert [pointer.line for pointer in drawn(SHORT, replace(ALWAYS, stray=1.0), asked=(FERRY,))] == [" 1950 [1]"]


def test_what_is_not_answered_is_pointed_at_what_answers_something_else() -> None:
    refused = Example("Who?", (), ("c",))
    changed = replace(SHORT, statements=())

    assert [pointer.line for pointer in drawn(refused, ALWAYS, asked=(SHORT,))] == [" 1950 [1]"]
    assert [pointer.line for pointer in drawn(changed, ALWAYS, asked=(FERRY,))] == [" 1950 [1]"]
    assert drawn(refused, ALWAYS) == []
    assert drawn(refused, replace(ALWAYS, misled=0.0), asked=(SHORT,)) == []


@given(seed=st.integers(0, 1000), room=st.integers(0, 250))
def test_pointers_keep_to_their_room_and_to_the_text(seed: int, room: int) -> None:
    mixture = Mixture(pointed=0.9, stray=0.5, misled=0.9)

    for example in (SHORT, OPEN, FERRY, replace(SHORT, statements=())):
        pointers = drawn(example, mixture, seed=seed, room=room, asked=(FERRY, OPEN))
        assert sum(len(pointer.line) for pointer in pointers) <= room
        for pointer in pointers:
            text = context().sources[pointer.number - 1].hit.chunk.text
            quoted = text[pointer.span.start_char : pointer.span.end_char]
            assert pointer.line == f" {quoted} [{pointer.number}]"


def test_shares_are_as_they_are_said() -> None:
    mixture = Mixture(pointed=0.6)
    pointing = Pointing(random.Random(5), room=1000, count_tokens=len, mixture=mixture)
    hits = sum(bool(pointing.at(SHORT, context(), NUMBERS, (SHORT,))) for _ in range(2000))

    assert 1100 < hits < 1300
