"""app.answering.generating.prompts: whatever is found and pointed at, the prompt and the answer fit the window."""

from dataclasses import dataclass, replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.fitting import Fitting
from app.answering.generating.model_class import ASKING, ModelClass
from app.answering.generating.prompts import Prompts
from app.answering.prompt import Prompt
from app.answering.question import AnswerDefaults, AnswerLength, Question
from app.answering.quoting.passage_reader import PassageReader
from app.answering.states.reading import Selection
from app.answering.states.sources import TokenBudget
from app.db.contents import ContentRepository
from app.types import Principal, Role
from generation.ports import Observer, Stream
from generation.types import GenerationRequest, ModelInfo
from retrieval.types import Hit, Scope
from tests.app.answering.groundings import retrieved, ships
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.metered import meter_of
from tests.app.answering.pointing_reader import PointingReader
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="How many ships came in May?",
    scope=Scope(tenant_id="t"),
)
LIMITS = AnswerDefaults(max_context_tokens=900, max_output_tokens=100, min_evidence=0.0, max_waiting=8)


class Window(IdleEngine):
    """An engine with a context window and nothing behind it."""

    def __init__(self, tokens: int) -> None:
        self.info = ModelInfo(model="m", revision="0", context_window=tokens, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        raise AssertionError("what is presented is not sent")


@dataclass(frozen=True)
class Presented:
    """What a model would read, in which room."""

    budget: TokenBudget
    selection: Selection
    prompt: Prompt


def presented(
    question: Question,
    found: tuple[Hit, ...],
    passage_reader: PassageReader,
    *,
    limits: AnswerDefaults = LIMITS,
    window: int = 4000,
) -> Presented:
    prompts = Prompts(
        engine=Window(window), tokenizer=LetterTokenizer(), limits=limits, asking=ASKING[ModelClass.QUOTES]
    )
    budget, meter = prompts.budget(question), meter_of(question)
    fitting = Fitting(cast(ContentRepository, None))
    grounding = fitting.fit(question, retrieved(question, found), budget, meter)
    selection = passage_reader.open(grounding, meter=meter, abstention=limits.refused_from(question)).read()
    return Presented(budget, selection, prompts.prompt(grounding, selection))


def pointing_at(words: str = "forty ships") -> PassageReader:
    return PassageReader(embedder=HashingEmbedder(), reader=PointingReader(words))


@given(
    window=st.integers(1900, 4000),
    wanted=st.integers(1, 5000),
    count=st.integers(1, 8),
    sentences=st.integers(1, 12),
    words=st.sampled_from(["forty ships", "In May of year 1 forty ships came", "nowhere"]),
)
def test_the_prompt_leaves_the_room_that_is_reserved_for_the_answer(
    window: int, wanted: int, count: int, sentences: int, words: str
) -> None:
    question = replace(QUESTION, max_context_tokens=wanted)
    limits = replace(LIMITS, max_context_tokens=5000)

    found = presented(question, ships(count, sentences), pointing_at(words), limits=limits, window=window)

    components = found.prompt.components
    assert components.total + found.budget.output <= window
    assert components.context <= found.budget.sources + found.budget.repeated


@pytest.mark.parametrize(
    ("text", "abstention", "line"),
    [
        (QUESTION.text, 1.0, 'Possible answer: """ forty ships [1] """'),
        (QUESTION.text, 1e-12, None),
        (
            "Tell me about the ships that came in May of year 0.",
            1e-12,
            'Possible answer: """ In May of year 0 forty ships',
        ),
    ],
)
def test_the_model_is_pointed_at_words_that_answer_and_else_at_sentences(
    text: str, abstention: float, line: str | None
) -> None:
    question = replace(QUESTION, text=text, abstention_threshold=abstention)

    found = presented(question, ships(1, 2), pointing_at())

    prompt = LetterTokenizer().decode(found.prompt.ids)
    assert found.selection.quotes
    assert ("Possible answer" in prompt) == (line is not None)
    assert line is None or line in prompt[prompt.rindex(text) :]


@pytest.mark.parametrize(
    ("length", "asked"),
    [("short", "Answer in one short sentence."), ("normal", None), ("long", "Answer in full:")],
)
def test_a_model_is_told_the_length_behind_the_instructions(length: AnswerLength, asked: str | None) -> None:
    question = replace(QUESTION, length=length, instructions="Name the year.")

    prompt = LetterTokenizer().decode(presented(question, ships(1, 2), pointing_at()).prompt.ids)

    assert ("Answer in one" in prompt, "Answer in full" in prompt) == (length == "short", length == "long")
    assert asked is None or f"Name the year.\n{asked}" in prompt


def test_without_a_reader_the_model_is_pointed_at_nothing() -> None:
    question = replace(QUESTION, abstention_threshold=1.0)

    found = presented(question, ships(1, 2), PassageReader(embedder=HashingEmbedder()))

    assert found.selection.quotes
    assert "Possible answer" not in LetterTokenizer().decode(found.prompt.ids)
