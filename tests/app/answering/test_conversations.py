"""app.answering.conversations: a history keeps its budget in whole turns, the newest first."""

from hypothesis import given
from hypothesis import strategies as st

from app.answering.conversations import history_of
from app.types import KeptTurn

kept = st.builds(
    lambda question, standalone, answer: KeptTurn(
        ordinal=1,
        created_at=0.0,
        request_id="r",
        question=question,
        standalone=standalone,
        answer=answer,
        answered=True,
        citations=(),
    ),
    st.text(max_size=20),
    st.none() | st.text(min_size=1, max_size=20),
    st.text(max_size=20),
)


@given(turns=st.lists(kept, max_size=8), budget=st.integers(0, 200))
def test_a_history_is_the_longest_end_of_whole_turns_that_fits(turns: list[KeptTurn], budget: int) -> None:
    history = history_of(turns, budget=budget, count_tokens=len)

    taken = len(history) // 2
    told = [(turn.standalone or turn.question, turn.answer) for turn in turns]
    last = told[len(told) - taken :]
    assert [message.content for message in history] == [text for pair in last for text in pair]
    assert [message.role for message in history] == ["user", "assistant"] * taken
    assert sum(len(message.content) for message in history) <= budget
    if taken < len(told):
        next_one = told[len(told) - taken - 1]
        assert sum(len(text) for pair in [next_one, *last] for text in pair) > budget
