"""app.answering.conversations.answer_record: what is kept of an answer comes back, whichever version stored it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.answers.answer import AbstentionReport, SourceReport, WindowUse
from app.answering.answers.parts import (
    AnyPart,
    ClarifyPart,
    JsonPart,
    LeadPart,
    NoteCode,
    NotePart,
    ProsePart,
    QuotePart,
    Reason,
    RefusedPart,
    ReplyPart,
    cited,
)
from app.answering.citing.citation import Citation
from app.answering.conversations.answer_record import AnswerRecord
from app.answering.formats.answer_formats import Format
from app.answering.languages.table import languages
from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage
from app.answering.quoting.rendering import quotation
from app.answering.states.finished import Finished
from app.types import Components, KeptTurn
from retrieval.types import Context, Span
from tests.app.answering.generating.test_strategy import CLAIM, written
from tests.app.answering.groundings import SENTENCE, SURE
from tests.app.answering.part_texts import quotes_in, texts_of
from tests.app.answering.quoting.test_rendering import highlighted, quotes_of, sentences
from tests.app.answering.quoting.test_strategy import quoted
from tests.app.answering.quoting.test_tables import MARKDOWN, quote_of

finite = st.none() | st.floats(allow_nan=False, allow_infinity=False)
places = st.builds(Span, st.integers(0, 99), st.integers(0, 99))
spans = st.lists(places, max_size=2).map(tuple)
place = {
    "start_char": st.integers(0, 99),
    "end_char": st.integers(0, 99),
    "citations": st.lists(st.integers(0, 9), max_size=2).map(tuple),
}
some_parts: st.SearchStrategy[AnyPart] = st.one_of(
    st.builds(LeadPart, words=places, **place),
    st.builds(QuotePart, quoted=places, answers=finite, highlights=spans, **place),
    st.builds(ProsePart, uncited=spans, **place),
    st.builds(NotePart, code=st.sampled_from(NoteCode), language=st.none() | st.text(max_size=8), **place),
    st.builds(RefusedPart, reason=st.sampled_from(Reason), **place),
    st.builds(ClarifyPart, **place),
    st.builds(ReplyPart, **place),
    st.builds(JsonPart, **place, unsupported=st.lists(st.text(), max_size=2).map(tuple)),
)
makings = st.builds(
    AnswerRecord,
    reason=st.none() | st.sampled_from(Reason),
    abstention=st.builds(AbstentionReport, score=finite, threshold=finite),
    usage=st.builds(TokenUsage, by_document=st.dictionaries(st.text(max_size=8), st.integers(), max_size=4)),
    timings_ms=st.dictionaries(st.text(max_size=8), finite, max_size=4),
    parts=st.lists(some_parts, max_size=4).map(tuple),
    probability=finite,
)


@given(making=makings)
def test_what_is_kept_comes_back_exactly(making: AnswerRecord) -> None:
    assert AnswerRecord.of_turn(turn_of(making.as_json())) == making


def test_the_record_of_an_earlier_version_has_its_calls() -> None:
    """Earlier records counted tokens by purpose, and named the language model whether it was called or not."""
    components = {"template": 24, "system": 60, "history": 0, "question": 17, "context": 99}
    counted = {"embedding_tokens": 12, "locate_tokens": 300, "verify_tokens": 0, "cached_tokens": 0}
    usage = {"components": components, "completion_tokens": 41, "by_document": {"doc_1": 99}, "bill": None, **counted}
    kept: dict[str, object] = {**making().as_json(), "model": "m", "usage": usage}
    quoted = {**kept, "usage": {**usage, "components": dict.fromkeys(components, 0), "completion_tokens": 0}}

    generated = AnswerRecord.of_turn(turn_of(kept))
    of_quotes = AnswerRecord.of_turn(turn_of(quoted))

    searched = ModelCall(purpose=Purpose.EMBED_QUERY, model="", prompt_tokens=12)
    read = ModelCall(purpose=Purpose.LOCATE, model="", prompt_tokens=300)
    answered = ModelCall(purpose=Purpose.ANSWER, model="m", prompt_tokens=200, completion_tokens=41)
    assert generated is not None
    assert of_quotes is not None
    assert (generated.model, generated.usage.calls) == ("m", (searched, read, answered))
    assert (of_quotes.model, of_quotes.usage.calls) == ("", (searched, read))


def test_a_turn_from_before_there_were_records_has_none() -> None:
    assert AnswerRecord.of_turn(turn_of(None, "Forty ships came. [1]")) is None


def making() -> AnswerRecord:
    nothing = Context(sources=(), dropped=(), tokens=0)
    return AnswerRecord(
        model="m",
        reason=None,
        finish_reason="stop",
        abstention=AbstentionReport(),
        sources=SourceReport.of((), nothing),
        usage=TokenUsage(Components(), {}),
        budget=WindowUse(0, 0, 0),
        timings_ms={},
        parts=(),
    )


def turn_of(kept: Mapping[str, object] | None, answer: str = "", citations: Sequence[Citation] = ()) -> KeptTurn:
    """A turn that was stored with this record."""
    return KeptTurn(
        ordinal=1,
        created_at=0.0,
        request_id="r",
        question="q",
        standalone=None,
        answer=answer,
        answered=True,
        citations=json.loads(json.dumps([asdict(one) for one in citations])),
        making=None if kept is None else json.loads(json.dumps(kept)),
    )


def earlier(record: AnswerRecord) -> dict[str, object]:
    """The record as the previous version stored it: the characters that are quoted, uncited and lead, and no parts."""
    kept: dict[str, Any] = record.as_json()
    parts = kept.pop("parts")
    return {
        **kept,
        "quoted": [
            {**part["quoted"], "answers": part["answers"], "highlights": part["highlights"]}
            for part in parts
            if part["kind"] == "quote"
        ],
        "uncited": [span for part in parts if part["kind"] == "prose" for span in part["uncited"]],
        "lead": next((part["words"] for part in parts if part["kind"] == "lead"), None),
    }


WRITTEN = ModelCall(purpose=Purpose.ANSWER, model="m", prompt_tokens=200, completion_tokens=41)


def record_of(ended: Finished) -> AnswerRecord:
    """Today's record of an answer."""
    markers = [Span(one.answer_start, one.answer_end) for one in ended.citations]
    made = replace(making(), reason=ended.reason, parts=cited(ended.parts, markers), probability=ended.probability)
    return replace(made, usage=TokenUsage(Components(), {}, calls=(WRITTEN,)))


def asked_back(code: str) -> Finished:
    """The question which of two documents is meant, in a language."""
    replies = languages()[code].replies
    assert replies is not None
    text = f"{replies.which_document}\n\n- `memo.txt`\n- `plan.pdf` (Strategic Plan 2022)"
    return Finished(reason=None, text=text, parts=(ClarifyPart(start_char=0, end_char=len(text)),))


def of_table() -> Finished:
    """An answer that quotes a row of a table, whose marker is in a line of its own."""
    found = quotation([quote_of(MARKDOWN, "| Nut | 4 EUR |", words="4 EUR")], form="markdown", pages={})
    return Finished(reason=None, text=found.text, citations=found.citations, parts=found.parts)


ANSWERS = {
    "lead and quotes": quoted(SURE, "answered"),
    "quotes alone": quoted(SURE, "answered", text="Why did the plant close?"),
    "row of a table": of_table(),
    "nearest passages": quoted(SURE, "unsure"),
    "refusal": quoted(0.125, "refused"),
    "refusal by a model": written("I don't know.", SURE),
    "withheld": written(CLAIM, SURE, strict=True),
    "prose": written(f"{SENTENCE} [1] {CLAIM}", SURE),
    "prose with quotes behind it": written(f"{CLAIM}\n\nNobody was hurt. [1]", SURE, quotes=True),
    "quotes in place of prose": written(CLAIM, SURE, quotes=True, strict=True),
    "question back": asked_back("en"),
    "question back in German": asked_back("de"),
    "nothing": Finished(reason=Reason.DRY_RUN),
}
PLAIN = {
    "lead and quotes": quoted(SURE, "answered", format="text"),
    "nearest passages": quoted(SURE, "unsure", format="text"),
    "refusal": quoted(0.125, "refused", format="text"),
    "prose": written(CLAIM, SURE, format="text"),
    "prose with quotes behind it": written(CLAIM, SURE, quotes=True, format="text"),
}


@pytest.mark.parametrize(
    "ended", [*ANSWERS.values(), *PLAIN.values()], ids=[*ANSWERS, *(f"{name}, plain" for name in PLAIN)]
)
def test_todays_record_comes_back_with_its_parts(ended: Finished) -> None:
    record = record_of(ended)

    assert AnswerRecord.of_turn(turn_of(record.as_json(), ended.text, ended.citations)) == record


@pytest.mark.parametrize("ended", ANSWERS.values(), ids=ANSWERS)
def test_the_record_of_the_previous_version_has_the_parts_that_it_would_have_today(ended: Finished) -> None:
    record = record_of(ended)

    assert AnswerRecord.of_turn(turn_of(earlier(record), ended.text, ended.citations)) == record


@pytest.mark.parametrize("ended", PLAIN.values(), ids=PLAIN)
def test_in_plain_text_the_previous_version_has_the_parts_that_it_would_have_today(ended: Finished) -> None:
    record = record_of(ended)

    found = AnswerRecord.of_turn(turn_of(earlier(record), ended.text, ended.citations))

    assert found is not None
    assert found.parts == record.parts
    assert [kind for kind, _ in texts_of(ended.text, found.parts)] == [part.kind for part in ended.parts]


def test_the_record_of_before_there_were_quotes_is_prose_as_a_whole() -> None:
    text = "Forty ships came. [1]"
    made = record_of(Finished(reason=None))
    kept = {name: value for name, value in earlier(made).items() if name not in {"quoted", "lead", "answers"}}

    found = AnswerRecord.of_turn(turn_of(kept, text))

    assert found is not None
    assert (found.parts, found.probability) == ((ProsePart(start_char=0, end_char=len(text)),), None)


def test_an_answer_of_the_previous_version_without_a_model_is_a_reply_and_a_document_is_json() -> None:
    reply = AnswerRecord.of_turn(turn_of(earlier(making()), "Hello."))
    document = AnswerRecord.of_turn(turn_of(earlier(record_of(Finished(reason=Reason.UNSURE))), '{"answer": "No"}'))

    assert reply is not None
    assert reply.parts == (ReplyPart(start_char=0, end_char=6),)
    assert document is not None
    assert document.parts == (JsonPart(start_char=0, end_char=16),)


@settings(deadline=None)  # the first call loads the sentence model
@given(texts=sentences, form=st.sampled_from(["markdown", "text"]), lead=st.booleans(), data=st.data())
def test_whatever_was_quoted_is_quoted_and_cited_as_it_would_be_today(
    texts: list[str], form: Format, lead: bool, data: st.DataObject
) -> None:
    quotes = quotes_of(*texts)
    at = data.draw(st.integers(0, len(quotes[0].text) - 1))
    length = data.draw(st.integers(1, len(quotes[0].text) - at))
    quotes[0] = highlighted(quotes[0], at, length)
    found = quotation(quotes, form=form, pages={}, lead=quotes[0] if lead else None)
    record = record_of(Finished(reason=None, text=found.text, citations=found.citations, parts=found.parts))

    derived = AnswerRecord.of_turn(turn_of(earlier(record), found.text, found.citations))

    assert derived is not None
    assert derived.parts == record.parts
    assert len(quotes_in(derived.parts)) == len(quotes)
