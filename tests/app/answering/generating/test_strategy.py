"""app.answering.generating.strategy: what a language model reads, and what the end of its text says of the answer."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.answers.parts import JsonPart, NoteCode, NotePart, Reason, RefusedPart, of_kind
from app.answering.formats.answer_formats import ANSWER_SCHEMA, Format
from app.answering.generating.footnote_writer import FootnoteWriter, VerbatimWriter
from app.answering.generating.generator import Generator
from app.answering.generating.model_class import ASKING, ModelClass
from app.answering.generating.prompts import Prompts
from app.answering.generating.strategy import Generating, Written, generated
from app.answering.languages.other_language import OtherLanguage
from app.answering.languages.table import REFUSAL
from app.answering.metering.token_usage import Purpose
from app.answering.quoting.rendering import quotation
from app.answering.states.finished import Finished
from app.answering.states.reading import Extract, Selection
from app.answering.states.strategy import Sources
from generation.types import Completion, FinishReason, SamplingParams, Timings
from retrieval.memo import Memo
from retrieval.types import Context, Span
from tests.app.answering.absent import WordsAlone
from tests.app.answering.groundings import (
    LIMITS,
    NEARLY_SURE,
    QUESTION,
    SENTENCE,
    SURE,
    TEXT,
    begun,
    fitted,
    grounding_of,
    ship_reader,
)
from tests.app.answering.metered import meter_of
from tests.app.answering.metering.test_meter import HeldEngine
from tests.app.answering.part_texts import (
    lead_in,
    quoted_in,
    quotes_in,
    require_tiling,
    text_of,
    texts_of,
    uncited_in,
)
from tests.app.answering.sources import source
from tests.generation.fakes import LetterTokenizer


class WideEngine(HeldEngine):
    """Has room for a prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.info = replace(self.info, context_window=4000)


def generating(
    engine: WideEngine,
    model_class: ModelClass = ModelClass.QUOTES,
    *,
    quote_unverified: bool = False,
    sure: bool = False,
) -> Generating:
    tokenizer, asking = LetterTokenizer(), ASKING[model_class]
    return Generating(
        generator=Generator(engine=engine, tokenizer=tokenizer, limits=LIMITS, wording=asking.wording),
        prompts=Prompts(engine=engine, tokenizer=tokenizer, limits=LIMITS, asking=asking),
        passage_reader=ship_reader(),
        verification=WordsAlone(),
        memo=Memo(),
        quote_unverified=quote_unverified,
        sure_quotes_answer=sure,
    )


@pytest.mark.parametrize(("dry_run", "count", "selects"), [(False, 2, True), (True, 2, True), (False, 0, False)])
def test_quotes_are_selected_where_there_are_sources_to_point_a_model_at(
    dry_run: bool, count: int, selects: bool
) -> None:
    engine, question = WideEngine(), replace(QUESTION, dry_run=dry_run)
    strategy, meter = generating(engine), meter_of(question, engine=engine)
    grounding = fitted(strategy, question, count, meter)

    sources, answer = begun(strategy.begin(grounding, meter))

    assert isinstance(answer, Finished | Written)
    selected = answer.probability is not None if isinstance(answer, Finished) else answer.prompted.selection is not None
    assert selected == selects
    assert [call.purpose for call in meter.calls] == [Purpose.LOCATE, Purpose.EXTRACT] * selects
    assert sources == [Sources(grounding, final=False)] * selects
    assert isinstance(answer, Written) == bool(engine.requests) == (selects and not dry_run)


def test_an_answer_that_is_stopped_while_its_sources_are_read_is_not_handed_to_the_engine() -> None:
    engine = WideEngine()
    strategy, meter = generating(engine), meter_of(QUESTION, engine=engine)
    beginning = strategy.begin(fitted(strategy, QUESTION, 2, meter), meter)
    next(beginning)
    meter.close()

    _, answer = begun(beginning)

    assert isinstance(answer, Finished)
    assert (answer.reason, answer.finish_reason, answer.probability) == ("cancelled", "cancelled", None)
    assert engine.requests == []


def completion_of(text: str, reason: FinishReason = FinishReason.STOP, *, error: str | None = None) -> Completion:
    return Completion("req_1", text, (1, 2), reason, 0, 0, 2, Timings(1.0, 2.0, 3.0), error=error)


def ended(reason: FinishReason, *, error: str | None = None) -> Finished:
    """The end of a generation that wrote one word, without sources."""
    writer = FootnoteWriter((), pages={})
    writer.feed("Because")
    writer.finish()
    return generated(grounding_of(QUESTION), writer, completion_of("Because", reason, error=error), None, None)


@pytest.mark.parametrize(
    "reason", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.REPETITION, FinishReason.CANCELLED]
)
def test_a_generation_that_came_to_an_end_is_an_answer(reason: FinishReason) -> None:
    given = ended(reason)

    assert (given.reason, given.error, given.finish_reason) == (None, None, reason.value)


def test_a_generation_that_failed_is_no_answer_and_says_so() -> None:
    given = ended(FinishReason.ERROR, error="The model failed.")

    assert (given.reason, given.error) == ("error", "The model failed.")


def test_a_generation_that_met_its_deadline_is_an_error_that_keeps_what_it_has() -> None:
    given = ended(FinishReason.DEADLINE)

    assert (given.reason, given.finish_reason) == ("error", "deadline")
    assert given.error == "The answer was not finished before its deadline."
    assert given.text == "Because"


def test_where_nothing_was_selected_nothing_is_estimated() -> None:
    given = ended(FinishReason.STOP)

    assert (given.probability, lead_in(given.parts), quotes_in(given.parts)) == (None, None, [])


def test_a_strict_answer_of_which_nothing_was_verified_is_a_refusal_by_the_verifier() -> None:
    writer = FootnoteWriter((), strict=True, refusal="I don't know.")
    writer.feed("Because the sea is deep.")
    writer.finish()

    given = generated(grounding_of(QUESTION), writer, completion_of(""), None, None)

    assert (given.reason, given.text) == ("not_verified", "I don't know.")
    assert given.abstention.stage == "verifier"
    assert (given.citations, uncited_in(given.parts)) == ((), [])


def written(
    text: str,
    score: float,
    *,
    quotes: bool = False,
    strict: bool = False,
    note: OtherLanguage | None = None,
    completion: Completion | None = None,
    **fields: Any,
) -> Finished:
    """A generated answer from a source whose first sentence answers with this probability."""
    question = replace(QUESTION, **fields)
    shown = source(TEXT)
    quote = Extract(shown, Span(0, 34), SENTENCE, score)
    selection = Selection((quote,), score, "answered", probabilities=((1, Span(0, 34), score),))
    writer = VerbatimWriter() if question.json_schema else FootnoteWriter((shown,), strict=strict, refusal=REFUSAL)
    writer.feed(text)
    writer.finish()
    if quotes:
        writer.quote(quotation([quote], form=question.format, pages={}))
    grounding = grounding_of(question, Context((shown,), (), 9), note=note)
    return generated(grounding, writer, completion or completion_of(text), selection, None)


@pytest.mark.parametrize(
    ("text", "score", "expected"),
    [
        (f"{SENTENCE} [1]", SURE, [(SURE, True)]),
        (f"{SENTENCE} [1]", NEARLY_SURE, [(NEARLY_SURE, False)]),
        ("Nobody was hurt. [1]", SURE, [(0.0, False)]),
    ],
)
def test_a_generated_answer_is_as_likely_to_answer_as_what_it_cites(
    text: str, score: float, expected: list[tuple[float, bool]]
) -> None:
    given = written(text, score)

    assert [(one.answers, one.verified) for one in given.citations] == expected
    assert given.probability == expected[0][0]


def test_a_generated_answer_that_cites_nothing_is_not_known_to_answer() -> None:
    given = written("Lavender blooms in June.", SURE)

    assert (given.probability, given.citations) == (0.0, ())


def test_quotes_behind_a_generated_answer_verify_nothing_that_it_says() -> None:
    given = written("Ninety zeppelins were sold at auction. [1]", SURE, quotes=True)

    assert [one.verified for one in given.citations] == [False, True]
    assert quoted_in(given.text, given.parts) == [SENTENCE]


CLAIM = "Ninety zeppelins were sold at auction."
GREEK = OtherLanguage("It is Greek.", "Ελληνικά")
QUOTED = f"{SENTENCE} [1]"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (f"{SENTENCE} [1]", {}, [("prose", f"{SENTENCE}[1]")]),
        (f"{CLAIM}\n\n> as they say", {}, [("prose", f"{CLAIM}\n\n> as they say")]),
        (CLAIM, {"note": GREEK}, [("prose", CLAIM)]),
        (CLAIM, {"quotes": True}, [("prose", CLAIM), ("quote", QUOTED)]),
        (CLAIM, {"quotes": True, "format": "text"}, [("prose", CLAIM), ("quote", f"“{SENTENCE}” [1]")]),
        (CLAIM, {"quotes": True, "strict": True}, [("quote", QUOTED)]),
        (CLAIM, {"strict": True, "note": GREEK}, [("refusal", REFUSAL), ("note", GREEK.text)]),
        (REFUSAL, {}, [("refusal", REFUSAL)]),
        (REFUSAL, {"note": GREEK}, [("refusal", REFUSAL), ("note", GREEK.text)]),
        (f"{REFUSAL} [1]", {"note": GREEK}, [("refusal", f"{REFUSAL}[1]"), ("note", GREEK.text)]),
        (REFUSAL, {"note": GREEK, "sampling": SamplingParams(max_tokens=1, logprobs=0)}, [("refusal", REFUSAL)]),
        ("", {}, []),
    ],
    ids=[
        "cited",
        "with a quotation of its own",
        "without a note",
        "with quotes behind it",
        "with quotes in plain text",
        "replaced by quotes",
        "withheld",
        "refused",
        "refused with a note",
        "refused with a marker",
        "refused with probabilities",
        "empty",
    ],
)
def test_each_character_of_an_answer_is_in_a_part_that_says_what_it_is(
    text: str, options: dict[str, Any], said: list[tuple[str, str]]
) -> None:
    given = written(text, SURE, **options)

    require_tiling(given.text, given.parts, given.citations)
    assert texts_of(given.text, given.parts) == said


@pytest.mark.parametrize(
    ("text", "strict", "reason"), [(REFUSAL, False, Reason.NOT_IN_SOURCES), (CLAIM, True, Reason.NOT_VERIFIED)]
)
def test_a_refusal_is_a_part_with_its_reason_and_its_note_names_the_language(
    text: str, strict: bool, reason: Reason
) -> None:
    given = written(text, SURE, strict=strict, note=GREEK)

    assert given.reason is reason
    assert [part.reason for part in of_kind(given.parts, RefusedPart)] == [reason]
    assert [(part.code, part.language) for part in of_kind(given.parts, NotePart)] == [
        (NoteCode.OTHER_LANGUAGE, GREEK.language)
    ]


def test_prose_knows_its_sentences_that_nothing_supports() -> None:
    given = written(f"{SENTENCE} [1] {CLAIM}", SURE)

    assert [text_of(given.text, span) for span in uncited_in(given.parts)] == [CLAIM]


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [
        ('{"answer": "Ninety", "sources": [1]}', ("/answer",)),
        (f'{{"answer": "{REFUSAL}", "sources": []}}', ()),
        (f'{{"answer": {json.dumps(SENTENCE)}, "sources": [1]}}', ()),
    ],
)
def test_json_is_one_part_which_names_the_values_that_no_source_states(text: str, unsupported: tuple[str, ...]) -> None:
    given = written(text, SURE, note=GREEK, format="json", json_schema=ANSWER_SCHEMA)

    assert (given.text, given.parts) == (
        text,
        (JsonPart(start_char=0, end_char=len(text), unsupported=unsupported),),
    )


@pytest.mark.parametrize(
    ("text", "said"), [("Because", [("prose", "Because")]), (REFUSAL, [("prose", REFUSAL)]), ("", [])]
)
def test_what_is_left_of_an_answer_that_failed_is_a_part_and_has_no_note(
    text: str, said: list[tuple[str, str]]
) -> None:
    given = written(text, SURE, note=GREEK, completion=completion_of(text, FinishReason.DEADLINE))

    assert given.reason is Reason.ERROR
    require_tiling(given.text, given.parts)
    assert texts_of(given.text, given.parts) == said


texts = st.lists(
    st.sampled_from([SENTENCE, CLAIM, REFUSAL, "[1]", "[7]", " ", "\n", "\n\n", "> ", "- ", "**", "“", "”", "a.", "b"]),
    max_size=8,
).map("".join)


@given(
    text=texts,
    form=st.sampled_from(["markdown", "text"]),
    quotes=st.booleans(),
    strict=st.booleans(),
    note=st.sampled_from([None, GREEK]),
)
def test_whatever_a_model_writes_is_tiled(
    text: str, form: Format, quotes: bool, strict: bool, note: OtherLanguage | None
) -> None:
    answer = written(text, SURE, quotes=quotes, strict=strict, note=note, format=form)

    require_tiling(answer.text, answer.parts, answer.citations)
    assert len(quotes_in(answer.parts)) == quotes
