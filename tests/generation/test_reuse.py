"""Cached prefixes are reused by the same tenant only, and change no generated token."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.memory import Layout
from generation.runner import ModelRunner
from generation.speculation import SpeculationPolicy
from generation.speculator import Speculator
from generation.tokenizer import ChatTokenizer
from generation.types import Completion, GenerationRequest
from generation.weights import LoadedModel, adopt_model
from tests.generation.fakes import RecordingObserver, read, request
from tests.generation.tiny import VOCAB, tiny_model, tiny_tokenizer

torch.set_num_threads(1)

LAYOUTS: list[Layout] = ["slabs", "pages"]


@cache
def loaded() -> LoadedModel:
    config = EngineConfig(model="tiny", block_tokens=4, kv_cache_bytes=512 * 4 * 2000)
    return adopt_model(tiny_model("llama", attention="eager"), config)


def tokens(count: int, *, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(0, VOCAB, (count,), generator=torch.Generator().manual_seed(seed)).tolist())


class Reciter:
    """Drafts a text it knows, with a mistake now and then."""

    def __init__(self, text: Sequence[int]) -> None:
        self._text = list(text)

    def push(self, token_id: int) -> None:
        assert self._text.pop(0) == token_id

    def propose(self, limit: int) -> list[int]:
        draft = self._text[:limit]
        return draft if len(self._text) % 3 else [*draft[:-1], 0]


def engine(*, layout: Layout = "slabs", recites: Sequence[int] | None = None, **settings: Any) -> LocalEngine:
    runner = ModelRunner(loaded(), vocab_size=VOCAB, block_tokens=4, layout=layout, poison=True)
    return LocalEngine(
        runner,
        ChatTokenizer(tiny_tokenizer()),
        EngineConfig(model="tiny", block_tokens=4, **settings),
        info=loaded().info,
        eos_ids=frozenset(),
        vocab_size=VOCAB,
        speculation=None
        if recites is None
        else Speculator(SpeculationPolicy(), draft_model=lambda _: Reciter(recites)),
    )


@pytest.fixture(params=LAYOUTS)
def serving(request: pytest.FixtureRequest) -> Iterator[LocalEngine]:
    made = engine(layout=request.param)
    yield made
    made.close()


async def ask(subject: LocalEngine, *asked: GenerationRequest) -> list[Completion]:
    streams = [subject.submit(one, observer=RecordingObserver()) for one in asked]
    return [done for _, done in await asyncio.gather(*map(read, streams))]


async def test_a_prompt_asked_again_is_found_but_for_its_end(serving: LocalEngine) -> None:
    asked = replace(request(prompt=tokens(41, seed=1)), salt="acme")

    [first] = await ask(serving, asked)
    [second] = await ask(serving, asked)

    assert (first.cached_tokens, second.cached_tokens) == (0, 40)
    assert second.token_ids == first.token_ids
    stats = serving.stats()
    assert stats.cached_tokens == 40
    assert stats.prefill_tokens == 41 + 1, "each token of the two prompts was either computed or found"


async def test_e5_another_tenant_finds_nothing_though_the_same_tenant_does(serving: LocalEngine) -> None:
    """Paired: without the first half this would pass with the cache switched off."""
    asked = request(prompt=tokens(41, seed=1))
    await ask(serving, replace(asked, salt="acme"))

    [same] = await ask(serving, replace(asked, salt="acme"))
    [other] = await ask(serving, replace(asked, salt="rival"))

    assert (same.cached_tokens, other.cached_tokens) == (40, 0)
    assert serving.cached_tokens(asked.prompt, salt="nobody") == 0
    assert serving.cached_tokens(asked.prompt, salt="acme") == 40


async def test_a_conversation_finds_its_own_answers(serving: LocalEngine) -> None:
    prompt = tokens(22, seed=2)
    [first] = await ask(serving, request(prompt=prompt, max_tokens=14))

    [second] = await ask(serving, request(prompt=(*prompt, *first.token_ids, *tokens(9, seed=3))))

    assert second.cached_tokens == 32, "22 + 14 tokens are nine full blocks, the last of them without its last token"


async def test_requests_that_come_together_compute_their_common_beginning_once(serving: LocalEngine) -> None:
    common = tokens(60, seed=4)
    asked = [request(str(number), prompt=(*common, *tokens(5, seed=number))) for number in range(4)]

    completions = await ask(serving, *asked)

    assert sorted(done.cached_tokens for done in completions) == [0, 60, 60, 60]


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_alone_in_a_crowd_after_preemption_with_drafts_or_a_hit_the_tokens_are_the_same(layout: Layout) -> None:
    asked = request("it", prompt=tokens(30, seed=5) * 2, max_tokens=40, temperature=0.9, top_p=0.95, seed=77)
    crowd = [
        request(str(number), prompt=tokens(10 + number, seed=number), max_tokens=40, temperature=1.0, seed=number)
        for number in range(31)
    ]
    alone = engine(layout=layout, max_running=1)
    [expected] = await ask(alone, asked)
    [hit] = await ask(alone, asked)
    alone.close()
    together = engine(layout=layout, max_running=32)
    [crowded, *_] = await ask(together, asked, *crowd)
    together.close()
    drafting = engine(layout=layout, recites=expected.token_ids)
    [drafted] = await ask(drafting, asked)
    drafting.close()
    cramped = engine_in(blocks=40, layout=layout)
    [preempted, *_] = await ask(cramped, replace(asked, priority=-1), *crowd[:3])
    preemptions = cramped.stats().preemptions
    cramped.close()

    assert hit.cached_tokens == 56
    assert 0 < drafted.accepted_tokens < drafted.drafted_tokens
    assert preemptions > 0
    outputs = {done.token_ids for done in (expected, hit, crowded, drafted, preempted)}
    assert outputs == {expected.token_ids}


def engine_in(*, blocks: int, layout: Layout) -> LocalEngine:
    small = replace(loaded(), kv_capacity_tokens=4 * blocks)
    return LocalEngine(
        ModelRunner(small, vocab_size=VOCAB, block_tokens=4, layout=layout, poison=True),
        ChatTokenizer(tiny_tokenizer()),
        EngineConfig(model="tiny", block_tokens=4),
        info=replace(small.info, context_window=4 * blocks),
        eos_ids=frozenset(),
        vocab_size=VOCAB,
    )


async def test_a_sequence_with_nan_logits_leaves_nothing_in_the_prefix_cache() -> None:
    model: Any = tiny_model("llama", attention="eager")
    sick = replace(adopt_model(model, EngineConfig(model="tiny", block_tokens=4)), kv_capacity_tokens=800)
    poisoned = VOCAB - 1
    with torch.no_grad():
        model.get_input_embeddings().weight[poisoned] = float("nan")
    subject = LocalEngine(
        ModelRunner(sick, vocab_size=poisoned, block_tokens=4),
        ChatTokenizer(tiny_tokenizer()),
        EngineConfig(model="tiny", block_tokens=4, step_tokens=16),
        info=replace(sick.info, context_window=200),
        eos_ids=frozenset(),
        vocab_size=VOCAB,
    )
    prompt: Sequence[int] = (*tokens(39, seed=6), poisoned)

    [done] = await ask(subject, request(prompt=prompt))
    found = subject.cached_tokens(prompt, salt="")
    subject.close()

    assert done.error is not None
    assert found == 0
