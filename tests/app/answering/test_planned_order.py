"""The planned order of sources with the real engine: later questions of a tenant reuse cached prefixes.

A tiny model with random weights, so what it says means nothing; what it reads, and what of it was
cached, is exact.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import pytest
import torch

from app.answering.answerer import Answerer
from app.answering.answers.answer import Answer
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.generating.strategy import Written
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.server.bootstrap import build
from app.settings import Settings
from app.types import Principal, Role
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.memory import Layout
from generation.runner import ModelRunner
from generation.tokenizer import ChatTokenizer
from generation.weights import LoadedModel, adopt_model
from retrieval.compress import edges_first
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Context, Hit, Scope, SearchMode
from tests.app.server.stations import ANY_EVIDENCE, stations
from tests.generation.tiny import tiny_model, tiny_tokenizer
from tests.installation import installed
from tests.retrieval.fakes import chunk, hit

torch.set_num_threads(1)

BLOCK_TOKENS = 4
TEXTS = {
    "harbour": "The harbour master logged forty ships in May. Two of them carried salt.",
    "mill": "The mill burned down in 1871, and nobody rebuilt its wheel.",
    "school": "Miss Odell taught Greek at the village school for thirty years.",
    "bridge": "The iron bridge opened with a toll of three pence a cart.",
    "church": "Lightning struck the church tower twice in one night.",
}


class Rankings:
    """Finds the documents a question names, in that order."""

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        named = [name for name in question.split() if name in TEXTS]
        return tuple(found(name, rank) for rank, name in enumerate(named, start=1))


def found(name: str, rank: int) -> Hit:
    key = list(TEXTS).index(name)
    return hit(chunk(key, TEXTS[name], document_id=name, filename=f"{name}.txt", start_char=100 * key), rank=rank)


@cache
def loaded() -> LoadedModel:
    config = EngineConfig(model="tiny", block_tokens=BLOCK_TOKENS, kv_cache_bytes=512 * BLOCK_TOKENS * 4000)
    return adopt_model(tiny_model("llama", attention="eager"), config)


@pytest.fixture(params=["slabs", "pages"])
def answerer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Answerer]:
    """An application's answerer over a real engine."""
    layout = cast(Layout, request.param)
    tokenizer = ChatTokenizer(tiny_tokenizer())
    vocab_size = tokenizer.vocab_size
    engine = LocalEngine(
        ModelRunner(loaded(), vocab_size=vocab_size, block_tokens=BLOCK_TOKENS, layout=layout),
        tokenizer,
        EngineConfig(model="tiny", block_tokens=BLOCK_TOKENS),
        info=replace(loaded().info, context_window=2000),
        eos_ids=frozenset(),
        vocab_size=vocab_size,
        constraints=ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=vocab_size),
    )
    settings = Settings(
        data_dir=installed(tmp_path / "data"), admin_key="fn_test_admin_key_of_the_suite", _env_file=None
    )
    with build(settings, with_models=False) as state:
        search = cast(Search, Rankings())
        yield stations(state, engine, tokenizer=tokenizer, search=search, limits=ANY_EVIDENCE).answerer
        engine.close()


class Read(NamedTuple):
    """What the model read for an answer."""

    context: Context
    prompt: Prompt


async def ask(answerer: Answerer, *names: str, tenant: str = "acme", number: int) -> tuple[Read, Answer]:
    question = Question(
        request_id=f"req_{number}",
        endpoint="ask",
        principal=Principal(tenant, "u", "k", Role.READER),
        text=f"What of {' '.join(names)} number {number}?",
        scope=Scope(tenant_id=tenant),
        max_output_tokens=6,
    )
    opened = answerer.open(question)
    begun = await opened.ready()
    assert isinstance(begun.answer, Written)
    return Read(opened.context, begun.answer.prompted.prompt), await opened.whole()


def read(prepared: Read) -> list[str]:
    """Documents in the order they were read."""
    return [source.hit.chunk.document_id for source in prepared.context.sources]


def tokens_of(prepared: Read, names: Sequence[str]) -> int:
    return sum(source.tokens for source in prepared.context.sources if source.hit.chunk.document_id in names)


@pytest.mark.parametrize(
    "again",
    [
        ("bridge", "school", "mill", "harbour"),
        ("school", "harbour", "bridge", "mill"),
        ("mill", "bridge", "harbour", "school"),
        ("church", "bridge", "harbour", "school", "mill"),
    ],
)
async def test_a_question_over_the_same_sources_in_another_rank_order_computes_none_of_them_again(
    answerer: Answerer, again: tuple[str, ...]
) -> None:
    first, answered = await ask(answerer, "harbour", "mill", "school", "bridge", number=1)
    common = read(first)

    second, reused = await ask(answerer, *again, number=2)

    assert answered.usage.cached_tokens == 0
    assert read(second) == [*common, *(name for name in again if name not in common)]
    shared = len(second.prompt.head) + tokens_of(second, common)
    assert shared - BLOCK_TOKENS < reused.usage.cached_tokens
    assert reused.usage.cached_tokens >= tokens_of(second, common) > 100
    assert reused.usage.cached_tokens <= next(
        at for at, pair in enumerate(zip(first.prompt.ids, second.prompt.ids, strict=False)) if pair[0] != pair[1]
    )


async def test_the_order_by_rank_alone_would_have_computed_most_of_it_again(answerer: Answerer) -> None:
    """Paired with the test above: it is the plan that reuses, not luck."""
    await ask(answerer, "harbour", "mill", "school", "bridge", number=1)
    second, reused = await ask(answerer, "bridge", "school", "mill", "harbour", number=2)
    by_rank = ["bridge", "school", "mill", "harbour"]
    unplanned = [by_rank[place] for place in edges_first(second.context.sources)]

    assert unplanned[0] != read(second)[0], "the first source read is another, so nothing behind the head agrees"
    assert reused.usage.cached_tokens > len(second.prompt.head) + tokens_of(second, by_rank[:1])


async def test_another_tenant_reuses_nothing_and_reads_the_strongest_at_the_edges(answerer: Answerer) -> None:
    await ask(answerer, "harbour", "mill", "school", "bridge", number=1)

    theirs, answered = await ask(answerer, "bridge", "school", "mill", "harbour", tenant="rival", number=2)

    assert answered.usage.cached_tokens == 0
    assert read(theirs) == ["bridge", "mill", "harbour", "school"]


async def test_numbers_lead_to_the_right_passages_in_the_planned_order(answerer: Answerer) -> None:
    await ask(answerer, "harbour", "mill", "school", "bridge", number=1)
    prepared, _ = await ask(answerer, "bridge", "church", "school", "mill", "harbour", number=2)
    tokenizer = ChatTokenizer(tiny_tokenizer())

    for source, (start, stop) in zip(prepared.context.sources, prepared.prompt.sources, strict=True):
        name = source.hit.chunk.document_id
        header = f"[{source.number}] {name}.txt\n"
        assert tokenizer.decode(prepared.prompt.ids[start:stop]) == f"{TEXTS[name]}\n"
        assert tokenizer.decode(prepared.prompt.ids[start - tokenizer.count(header) : start]) == header
        writer = FootnoteWriter(prepared.context.sources)
        sentence = TEXTS[name].split(". ")[0].removesuffix(".")
        writer.feed(f"{sentence} [{source.number}].")
        writer.finish()
        (citation,) = writer.citations
        assert (citation.document_id, citation.verified) == (name, True)
        offset = source.hit.chunk.start_char
        assert citation.cited_text == TEXTS[name][citation.start_char - offset : citation.end_char - offset]
        assert citation.cited_text.removesuffix(".") == sentence
    assert read(prepared) != ["bridge", "school", "harbour", "mill", "church"], "not the order of a cold cache"


async def test_every_question_of_a_session_pays_for_new_sources_only(answerer: Answerer) -> None:
    names = list(TEXTS)
    sessions = [await ask(answerer, *reversed(names[:count]), number=count) for count in range(1, len(names) + 1)]

    for (before, _), (after, answered) in pairwise(sessions):
        assert read(after)[: len(read(before))] == read(before)
        assert answered.usage.cached_tokens >= tokens_of(after, read(before))
