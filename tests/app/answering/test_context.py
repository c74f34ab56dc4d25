"""app.answering.context: whatever is found and pointed at, the prompt and the answer fit the context window."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.answering.calls import Calls
from app.answering.context import ContextBuilder
from app.answering.locator import Locator
from app.answering.question import Limits, Question
from app.answering.wording import Wording
from app.types import Principal, Reservation, Role
from app.usage.ledger.ledger import MeteredCall
from generation.ports import Observer, Stream
from generation.types import GenerationRequest, ModelInfo
from retrieval.types import Hit, Scope
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.pointing_reader import PointingReader
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import chunk, hit

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="How many ships came in May?",
    scope=Scope(tenant_id="t"),
)


class NoBooks:
    """Writes nothing down."""

    def metered(self, reservation: Reservation) -> AbstractContextManager[MeteredCall]:
        return nullcontext(MeteredCall())


class Window(IdleEngine):
    """An engine with a context window and nothing behind it."""

    def __init__(self, tokens: int) -> None:
        self.info = ModelInfo(model="m", revision="0", context_window=tokens, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        raise AssertionError("what is presented is not sent")

    def cached_tokens(self, prompt: object, *, salt: str = "") -> int:
        return 0


def unmarked(calls: Calls) -> AbstractContextManager[None]:
    return nullcontext()


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
        summariser=None,
        locator=Locator(PointingReader(words), ledger=NoBooks()),  # type: ignore[arg-type]
        quoter=None,
    )
    question = replace(QUESTION, max_context_tokens=wanted)

    room = contexts.room(question)
    presented = contexts.build(question, hits(count, sentences), room=room, running=unmarked)

    components = presented.prompt.components
    assert components.total + room.max_output <= window
    assert components.context <= room.context
