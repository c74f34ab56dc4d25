"""generation.remote against a real server, where FOOTNOTE_TEST_COMPLETIONS_URL names one (its base URL, with /v1).

The server must serve the default generator, and nobody else meanwhile: llama.cpp's, for instance, with the
weights that `footnote models fetch` downloads. With its `/slots` route on, cancellation is seen there too.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from itertools import pairwise

import httpx
import pytest

from app.models.folder import resolve
from app.settings import DEFAULT_GENERATOR, load_settings
from generation.remote import RemoteEngine
from generation.remote_config import RemoteConfig
from generation.tokenizer import ChatTokenizer
from generation.types import Completion, Delta, FinishReason, GenerationRequest, SamplingParams
from tests.generation.fakes import RecordingObserver, wait_until
from tests.server import require_default_models

URL = os.environ.get("FOOTNOTE_TEST_COMPLETIONS_URL", "").rstrip("/")
WINDOW = 2048

pytestmark = pytest.mark.skipif(not URL, reason="FOOTNOTE_TEST_COMPLETIONS_URL names no server")


@pytest.fixture(scope="module")
def tokenizer() -> ChatTokenizer:
    require_default_models()
    return ChatTokenizer.load(resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir))


@pytest.fixture
def engine(tokenizer: ChatTokenizer) -> Iterator[RemoteEngine]:
    served = httpx.get(f"{URL}/models", trust_env=False).json()["data"][0]["id"]
    engine = RemoteEngine(RemoteConfig(base_url=URL, model=served), tokenizer, context_window=WINDOW)
    yield engine
    engine.close()


@pytest.fixture
def ask(tokenizer: ChatTokenizer) -> Callable[..., GenerationRequest]:
    head, tail = tokenizer.chat_frame(["user"])

    def make(
        text: str, *, max_tokens: int = 12, deadline_s: float | None = None, **sampling: object
    ) -> GenerationRequest:
        params = SamplingParams(max_tokens=max_tokens, **sampling)  # type: ignore[arg-type]  # the tests' own
        return GenerationRequest("real", (*head, *tokenizer.encode(text), *tail), params, deadline_s=deadline_s)

    return make


async def read(engine: RemoteEngine, request: GenerationRequest) -> tuple[list[Delta], Completion]:
    observer, deltas = RecordingObserver(), []
    async for event in engine.submit(request, observer=observer):
        if isinstance(event, Delta):
            deltas.append(event)
        else:
            assert observer.wait() == event
            assert "".join(delta.text for delta in deltas) == event.text
            assert sum(delta.tokens for delta in deltas) == event.generated_tokens
            return deltas, event
    raise AssertionError("a stream ends with its completion")


def idle() -> bool:
    """Whether the server says that none of its slots works; true of one that does not say."""
    response = httpx.get(f"{URL.removesuffix('/v1')}/slots", trust_env=False)
    return response.status_code != 200 or not any(slot["is_processing"] for slot in response.json())


async def test_text_streams_and_every_token_is_on_the_bill(engine, ask) -> None:
    request = ask("Name three rivers of Europe.")
    deltas, done = await read(engine, request)
    _, again = await read(engine, request)

    assert (done.finish_reason, done.error, done.generated_tokens) == (FinishReason.LENGTH, None, 12)
    assert len(deltas) > 1
    assert done.prompt_tokens == again.prompt_tokens == len(request.prompt)
    assert done.delivered_tokens == 12
    assert again.text == done.text, "greedy"
    assert again.cached_tokens <= again.prompt_tokens
    wait_until(engine.alive)


async def test_an_end_of_sequence_is_a_stop_and_its_token_is_counted(engine, ask, tokenizer) -> None:
    _, done = await read(engine, ask("What is 2+2? Answer with one number.", max_tokens=100))

    assert done.finish_reason is FinishReason.STOP
    assert done.generated_tokens in {tokenizer.count(done.text), tokenizer.count(done.text) + 1}


async def test_a_stop_string_ends_the_text_before_it(engine, ask) -> None:
    _, whole = await read(engine, ask("Name three rivers of Europe."))
    word = whole.text.split()[3]
    _, cut = await read(engine, ask("Name three rivers of Europe.", stop=(word,)))

    assert cut.finish_reason is FinishReason.STOP
    assert cut.text == whole.text[: whole.text.index(word)]
    assert cut.generated_tokens <= whole.generated_tokens


async def test_the_same_seed_gives_the_same_text(engine, ask) -> None:
    texts = []
    for seed in (1, 1, 2):
        _, done = await read(engine, ask("Invent a name for a whale.", temperature=1.5, seed=seed))
        texts.append(done.text)

    assert texts[0] == texts[1] != texts[2]


async def test_log_probabilities_come_for_every_token_best_first(engine, ask) -> None:
    _, done = await read(engine, ask("Name three rivers.", max_tokens=5, logprobs=3))

    assert len(done.logprobs) == 5
    for entry in done.logprobs:
        assert entry.top[0] == (entry.token_id, entry.logprob), "greedy takes the likeliest"
        assert all(left >= right for (_, left), (_, right) in pairwise(entry.top))
        assert entry.logprob <= 0


async def test_characters_of_several_tokens_arrive_whole(engine, ask) -> None:
    deltas, done = await read(engine, ask("Repeat exactly: 🦭🦭🦭 漢字 🦭🦭🦭", max_tokens=30))

    assert not any("\ufffd" in delta.text for delta in deltas[:-1])
    assert done.generated_tokens <= 30


@pytest.mark.parametrize("how", ["closed", "deadline"])
async def test_what_ends_midway_ends_at_the_server_too(engine, ask, how) -> None:
    endless = {"max_tokens": 1500, "ignore_eos": True}
    late = how == "deadline"
    observer = RecordingObserver()
    stream = engine.submit(
        ask("Tell a very long story.", deadline_s=3.0 if late else None, **endless), observer=observer
    )
    async for event in stream:
        if isinstance(event, Delta) and not late:
            stream.close()
    done = observer.wait()
    await asyncio.to_thread(wait_until, idle)

    assert done.finish_reason is (FinishReason.DEADLINE if late else FinishReason.CANCELLED)
    assert 0 < done.generated_tokens < 1500
    assert done.delivered_tokens <= done.generated_tokens


async def test_more_requests_than_the_server_has_slots_all_end(engine, ask) -> None:
    outcomes = await asyncio.gather(*(read(engine, ask(f"Write about the number {n}.")) for n in range(6)))

    assert all(done.error is None and done.generated_tokens > 0 for _, done in outcomes)
    assert engine.stats().running == engine.stats().waiting == 0
