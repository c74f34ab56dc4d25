"""app.answering.generating.strategy: a model that reads well words the answer, and quotes stand in where it refuses."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from app.answering.answers.answer import TextDelta
from app.answering.answers.parts import Reason
from app.answering.formats.answer_formats import ANSWER_SCHEMA
from app.answering.generating.model_class import ModelClass
from app.answering.generating.strategy import Written
from app.answering.generating.wording import Wording
from app.answering.languages.table import REFUSAL
from app.answering.states.finished import Finished
from app.answering.states.strategy import Writing
from generation.ports import Observer
from generation.types import Completion, Delta, GenerationRequest, SamplingParams
from tests.app.answering.generating.test_strategy import WideEngine, completion_of, generating
from tests.app.answering.groundings import QUESTION, begun, fitted
from tests.app.answering.metered import meter_of
from tests.app.answering.part_texts import highlighted_in, lead_in, require_tiling
from tests.generation.fakes import LetterTokenizer


class WritingEngine(WideEngine):
    """Writes one text, in pieces of four characters."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def submit(self, request: GenerationRequest, *, observer: Observer) -> "WrittenStream":  # type: ignore[override]
        super().submit(request, observer=observer)
        return WrittenStream(self._text)


class WrittenStream:
    def __init__(self, text: str) -> None:
        self._text = text

    async def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        for at in range(0, len(self._text), 4):
            yield Delta(self._text[at : at + 4], 1)
        yield completion_of(self._text)

    def close(self) -> None:
        """There is nothing to stop."""


async def ask(
    engine: WideEngine, model_class: ModelClass, *, quotes: bool = True, **fields: Any
) -> tuple[str, Finished]:
    """What is streamed of an answer about ships, and how it ends."""
    question = replace(QUESTION, **fields)
    strategy, meter = generating(engine, model_class, quote_unverified=quotes), meter_of(question, engine=engine)
    _, answer = begun(strategy.begin(fitted(strategy, question, 5, meter), meter))
    assert isinstance(answer, Written)
    *deltas, finished = [event async for event in answer.events()]
    assert isinstance(finished, Finished)
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), finished


DENIED = "The sources do not mention how many ships came in May."


@pytest.mark.parametrize("text", [REFUSAL, DENIED, f"{DENIED} [1]"])
@pytest.mark.parametrize("model_class", [ModelClass.WRITER, ModelClass.STRONG])
async def test_where_a_model_refuses_the_quotes_are_the_nearest_passages(model_class: ModelClass, text: str) -> None:
    streamed, finished = await ask(WritingEngine(text), model_class)

    assert streamed == ""
    assert (finished.reason, finished.model) == (Reason.UNSURE, "m")
    assert (finished.abstention.stage, lead_in(finished.parts)) == ("model", None)
    assert highlighted_in(finished.text, finished.parts)[0] == ["forty ships"]
    assert not any(one.verified for one in finished.citations)
    assert finished.completion is not None
    require_tiling(finished.text, finished.parts, finished.citations)


@pytest.mark.parametrize("options", [{"quotes": False}, {"json_schema": ANSWER_SCHEMA, "format": "json"}])
async def test_a_refusal_stays_where_quotes_may_not_replace_it(options: dict[str, Any]) -> None:
    text = '{"answer": "None", "sources": []}' if "json_schema" in options else REFUSAL

    _, finished = await ask(WritingEngine(text), ModelClass.WRITER, **options)

    assert finished.text == text


async def test_a_model_that_is_pointed_at_quotes_refuses_itself() -> None:
    streamed, finished = await ask(WritingEngine(DENIED), ModelClass.QUOTES)

    assert (streamed, finished.text, finished.reason) == (DENIED, DENIED, Reason.NOT_IN_SOURCES)


async def test_an_answer_in_words_is_streamed_and_not_replaced() -> None:
    text = "In May of year 1 forty ships came to harbour 1. So it was."

    streamed, finished = await ask(WritingEngine(text), ModelClass.WRITER)

    assert finished.text.startswith("In May of year 1 forty ships came to harbour 1.[")
    assert streamed == finished.text
    assert finished.reason is None


async def test_a_writer_reads_three_passages_without_pointers_and_a_strong_model_all() -> None:
    prompts = {}
    for model_class in ModelClass:
        engine = WritingEngine(REFUSAL)
        await ask(engine, model_class)
        prompts[model_class] = LetterTokenizer().decode(engine.requests[0].prompt)

    everything, three, most = (prompts[one].count("] a.txt") for one in ModelClass)
    assert (three, most) == (3, everything)
    assert everything > 3
    assert [Wording().pointer in prompts[one] for one in ModelClass] == [True, False, False]
    assert [Wording().reminder in prompts[one] for one in ModelClass] == [True, False, False]
    assert [prompts[one].endswith("Question: How many ships came in May?") for one in ModelClass] == [False, True, True]


def first(**fields: Any) -> tuple[Finished | Writing, list[GenerationRequest]]:
    """The answer of a writer that leaves sure quotes as they are, as it begins, and what the engine was asked."""
    engine, question = WritingEngine(REFUSAL), replace(QUESTION, **fields)
    strategy, meter = (
        generating(engine, ModelClass.WRITER, quote_unverified=True, sure=True),
        meter_of(question, engine=engine),
    )
    _, answer = begun(strategy.begin(fitted(strategy, question, 5, meter), meter))
    return answer, engine.requests


def test_where_quotes_surely_answer_in_a_few_words_they_are_the_answer_by_quotes() -> None:
    answer, requests = first()

    assert isinstance(answer, Finished)
    assert requests == []
    assert (answer.reason, answer.model, answer.completion) == (None, "", None)
    assert lead_in(answer.parts) is not None
    assert highlighted_in(answer.text, answer.parts)[0] == ["forty ships"]
    require_tiling(answer.text, answer.parts, answer.citations)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "Why did forty ships come in May?"},
        {"text": "Wie viele Schiffe kamen im Mai?"},
        {"text": "List the ships that came in May."},
        {"instructions": "Answer as a poem."},
        {"json_schema": ANSWER_SCHEMA, "format": "json"},
        {"sampling": SamplingParams(max_tokens=1, logprobs=2)},
    ],
)
def test_whoever_wants_more_than_a_few_words_gets_the_models(fields: dict[str, Any]) -> None:
    answer, requests = first(**fields)

    assert isinstance(answer, Written)
    assert len(requests) == 1


def test_a_dry_run_plans_the_prompt_whatever_quotes_say() -> None:
    answer, requests = first(dry_run=True)

    assert isinstance(answer, Finished)
    assert answer.prompt.components.total > 0
    assert requests == []
