"""app.answering.understanding.documents.which: a name is a reply where the question back was the last thing said."""

import pytest

from app.answering.question import Message
from app.answering.understanding.documents.which import named_in_reply

ASKED = Message("user", "Summarise the document.")
BACK = Message("assistant", "Which document do you mean?\n\n- `plan.pdf` (Strategic Plan 2022)", asks=True)


@pytest.mark.parametrize("before", [[], [Message("user", "Hello."), Message("assistant", "Hello!")]])
def test_the_name_that_follows_the_question_back_is_wanted(before: list[Message]) -> None:
    wanted = named_in_reply("the strategic plan", [*before, ASKED, BACK])

    assert wanted is not None
    assert wanted.words == {"strategic", "plan"}


@pytest.mark.parametrize(
    "history",
    [
        [],
        [BACK],
        [ASKED, Message("assistant", BACK.content)],
        [Message("user", "When did the plant close?"), BACK],
        [ASKED, BACK, ASKED, Message("assistant", "It is about the plan. [1]")],
    ],
    ids=["nothing", "nobody asked", "no question back", "another question", "answered since"],
)
def test_a_name_that_nobody_asked_for_is_no_reply(history: list[Message]) -> None:
    assert named_in_reply("the strategic plan", history) is None


def test_a_long_text_is_no_name() -> None:
    assert named_in_reply("plan " * 41, [ASKED, BACK]) is None
