"""app.answering.generating.held_text: a refusal is never shown before it is known whether quotes replace it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.generating.held_text import HeldText
from app.answering.languages.refusals import refuses

ANSWER = "The plant in Oslo closed on 4 May after a fire destroyed the main turbine hall. Nobody was hurt."
DENIAL = "The sources do not mention when the plant closed. There is no information about a fire."


@pytest.mark.parametrize("text", ["I don't know.", DENIAL, "Ich weiß es nicht."])
def test_a_refusal_is_held_to_its_end(text: str) -> None:
    held = HeldText()

    assert "".join(held.feed(char) for char in text) == ""
    assert held.finish() == text
    assert held.finish() == ""


def test_an_answer_is_shown_from_its_second_sentence_on_or_once_it_is_long() -> None:
    held = HeldText()
    shown = [held.feed(char) for char in ANSWER]

    assert "".join(shown) + held.finish() == ANSWER
    assert (
        next(at for at, text in enumerate(shown) if text) < len("The plant in Oslo closed on 4 May after a fire") + 55
    )


@given(cuts=st.lists(st.integers(1, 40), max_size=9), text=st.sampled_from([ANSWER, DENIAL, f"{DENIAL} {ANSWER}", ""]))
def test_nothing_is_lost_and_no_refusal_is_shown(cuts: list[int], text: str) -> None:
    held, at, shown = HeldText(), 0, ""
    for cut in cuts:
        shown += held.feed(text[at : at + cut])
        at += cut
    shown += held.feed(text[at:])

    assert not shown or not refuses(text, cited=False)
    assert shown + held.finish() == text
