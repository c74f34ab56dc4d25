"""app.answering.conversations: what is kept of how an answer was made comes back exactly."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.answering.answer import AbstentionReport, Budget, SourceReport
from app.answering.conversations import AnswerRecord
from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage
from app.types import Components
from retrieval.types import Context

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


def test_the_record_of_an_earlier_version_has_its_calls() -> None:
    """Earlier records counted tokens by purpose, and named the language model whether it was called or not."""
    components = {"template": 24, "system": 60, "history": 0, "question": 17, "context": 99}
    counted = {"embedding_tokens": 12, "locate_tokens": 300, "verify_tokens": 0, "cached_tokens": 0}
    usage = {"components": components, "completion_tokens": 41, "by_document": {"doc_1": 99}, "bill": None, **counted}
    kept: dict[str, object] = {**making().as_json(), "model": "m", "usage": usage}
    quoted = {**kept, "usage": {**usage, "components": dict.fromkeys(components, 0), "completion_tokens": 0}}

    generated = AnswerRecord.from_json(kept)
    of_quotes = AnswerRecord.from_json(quoted)

    searched = ModelCall(purpose=Purpose.EMBED_QUERY, model="", prompt_tokens=12)
    read = ModelCall(purpose=Purpose.LOCATE, model="", prompt_tokens=300)
    answered = ModelCall(purpose=Purpose.ANSWER, model="m", prompt_tokens=200, completion_tokens=41)
    assert (generated.model, generated.usage.calls) == ("m", (searched, read, answered))
    assert (of_quotes.model, of_quotes.usage.calls) == ("", (searched, read))


def making() -> AnswerRecord:
    nothing = Context(sources=(), dropped=(), tokens=0)
    return AnswerRecord(
        model="m",
        reason=None,
        finish_reason="stop",
        uncited=(),
        abstention=AbstentionReport(),
        sources=SourceReport.of((), nothing),
        usage=TokenUsage(Components(), {}),
        budget=Budget(0, 0, 0),
        timings_ms={},
    )
