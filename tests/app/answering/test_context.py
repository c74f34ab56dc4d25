"""app.answering.context: whatever is found and pointed at, the prompt and the answer fit the context window."""

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.answer import AbstentionReport
from app.answering.context import ContextBuilder
from app.answering.generating.wording import Wording
from app.answering.question import Limits, Question
from app.answering.quoting.quoter import Quoter
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.retrieving.retriever import Retrieved
from app.db.contents import ContentRepository
from app.types import Principal, Role
from generation.errors import ContextLengthExceeded
from generation.ports import Observer, Stream
from generation.types import GenerationRequest, ModelInfo
from retrieval.types import Hit, Scope
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.metered import meter_of
from tests.app.answering.pointing_reader import PointingReader
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder, chunk, hit

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="How many ships came in May?",
    scope=Scope(tenant_id="t"),
)


def retrieved(found: tuple[Hit, ...]) -> Retrieved:
    vector = QuestionVectors(HashingEmbedder()).of(QUESTION, meter_of(QUESTION))
    return Retrieved(hits=found, found=found, evidence=AbstentionReport(), vector=vector)


class Window(IdleEngine):
    """An engine with a context window and nothing behind it."""

    def __init__(self, tokens: int) -> None:
        self.info = ModelInfo(model="m", revision="0", context_window=tokens, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        raise AssertionError("what is presented is not sent")

    def cached_tokens(self, prompt: object, *, salt: str = "") -> int:
        return 0


def hits(count: int, sentences: int) -> tuple[Hit, ...]:
    told = " ".join(f"In May of year {year} forty ships came to harbour {year}." for year in range(sentences))
    return tuple(
        hit(chunk(rank, f"{told} It is page {rank}.", document_id=f"doc_{rank}"), rank=rank)
        for rank in range(1, count + 1)
    )


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
    limits = Limits(max_context_tokens=5000, max_output_tokens=100, min_evidence=0.0, max_waiting=8)
    contexts = ContextBuilder(
        engine=Window(window),
        tokenizer=LetterTokenizer(),
        limits=limits,
        wording=Wording(),
        contents=cast(ContentRepository, None),
        summariser=None,
        quoter=Quoter(embedder=HashingEmbedder(), reader=PointingReader(words)),
    )
    question = replace(QUESTION, max_context_tokens=wanted)

    room = contexts.room(question)
    presented = contexts.build(question, retrieved(hits(count, sentences)), room=room, meter=meter_of(question))

    components = presented.prompt.components
    assert components.total + room.max_output <= window
    assert components.context <= room.context


def builder(quoter: Quoter | None, *, window: int = 4000) -> ContextBuilder:
    return ContextBuilder(
        engine=Window(window),
        tokenizer=LetterTokenizer(),
        limits=Limits(max_context_tokens=900, max_output_tokens=100, min_evidence=0.0, max_waiting=8),
        wording=Wording(),
        contents=cast(ContentRepository, None),
        summariser=None,
        quoter=quoter,
    )


def quoting(words: str = "forty ships", *, failing: bool = False) -> Quoter:
    reader = PointingReader(words, failing=failing)
    return Quoter(embedder=HashingEmbedder(), reader=reader)


@pytest.mark.parametrize(("wanted", "tokens"), [(None, 900), (300, 300), (100_000, 100_000)])
def test_quotes_need_no_prompt_and_leave_all_room_to_the_sources(wanted: int | None, tokens: int) -> None:
    contexts = builder(quoting(), window=len(QUESTION.text))
    question = replace(QUESTION, max_context_tokens=wanted)

    room = contexts.room(question, prompted=False)
    built = contexts.build(question, retrieved(hits(3, 2)), room=room, meter=meter_of(question), prompted=False)

    assert (room.window, room.max_output, room.context, room.head) == (tokens, 0, tokens, ())
    assert built.prompt.ids == ()
    assert built.context.tokens <= tokens
    assert [source.hit.chunk.document_id for source in built.context.sources] == ["doc_1", "doc_2", "doc_3"][
        : len(built.context.sources)
    ]
    assert built.selection is not None
    assert built.selection.quotes[0].words == "forty ships"


def test_c9_a_question_longer_than_the_window_is_refused_where_quotes_answer_too() -> None:
    contexts = builder(quoting(), window=len(QUESTION.text) - 1)

    with pytest.raises(ContextLengthExceeded) as caught:
        contexts.room(QUESTION, prompted=False)

    found = caught.value
    assert (found.prompt_tokens, found.max_tokens, found.context_window) == (
        len(QUESTION.text),
        0,
        len(QUESTION.text) - 1,
    )


@pytest.mark.parametrize(
    ("fields", "count", "prompted", "selects"),
    [
        ({}, 2, True, True),
        ({}, 2, False, True),
        ({"dry_run": True}, 2, True, True),
        ({"dry_run": True}, 2, False, False),
        ({}, 0, True, False),
        ({}, 0, False, False),
    ],
)
def test_quotes_are_selected_where_there_are_sources_and_somebody_uses_them(
    fields: dict[str, bool], count: int, prompted: bool, selects: bool
) -> None:
    contexts, question = builder(quoting()), replace(QUESTION, dry_run=fields.get("dry_run", False))

    room = contexts.room(question, prompted=prompted)
    built = contexts.build(question, retrieved(hits(count, 2)), room=room, meter=meter_of(question), prompted=prompted)

    assert (built.selection is not None) == selects


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
    contexts = builder(quoting())
    question = replace(QUESTION, text=text, abstention_threshold=abstention)

    built = contexts.build(question, retrieved(hits(1, 2)), room=contexts.room(question), meter=meter_of(question))

    prompt = LetterTokenizer().decode(built.prompt.ids)
    assert built.selection is not None
    assert built.selection.quotes
    assert ("Possible answer" in prompt) == (line is not None)
    assert line is None or line in prompt[prompt.rindex(text) :]


def test_without_a_reader_the_model_is_pointed_at_nothing() -> None:
    quoter = Quoter(embedder=HashingEmbedder())
    contexts, question = builder(quoter), replace(QUESTION, abstention_threshold=1.0)

    built = contexts.build(question, retrieved(hits(1, 2)), room=contexts.room(question), meter=meter_of(question))

    assert built.selection is not None
    assert built.selection.quotes
    assert "Possible answer" not in LetterTokenizer().decode(built.prompt.ids)
