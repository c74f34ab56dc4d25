"""app.answering.conversations: what is kept of how an answer was made comes back exactly."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.answering.answer import AbstentionReport, TokenUsage
from app.answering.conversations import AnswerRecord

finite = st.none() | st.floats(allow_nan=False, allow_infinity=False)
makings = st.builds(
    AnswerRecord,
    abstention=st.builds(AbstentionReport, score=finite, threshold=finite),
    usage=st.builds(TokenUsage, by_document=st.dictionaries(st.text(max_size=8), st.integers(), max_size=4)),
    timings_ms=st.dictionaries(st.text(max_size=8), finite, max_size=4),
)


@given(making=makings)
def test_what_is_kept_comes_back_exactly(making: AnswerRecord) -> None:
    assert AnswerRecord.from_json(json.loads(json.dumps(making.as_json()))) == making
