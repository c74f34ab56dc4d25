"""FAULTS.md E5: what a request costs does not tell which questions another tenant asked.

The quick form of `python -m tests.bench.service.prefix_timing`. It counts work in place of time: the tokens of a
prompt that the generator does not read, and the words of a query that the embedder does not read. So a busy machine
changes no result.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.ports import Tokenizer
from generation.runner import ModelRunner
from generation.scheduler import ScheduledTokens
from generation.sequence import SequenceState
from generation.step import Sample
from generation.tokenizer import ChatTokenizer
from generation.weights import adopt_model
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.bench.service.prefix_timing import Tenant, Trials, ask_trials, auc, search_trials
from tests.generation.tiny import tiny_model, tiny_tokenizer
from tests.installation import installed
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY

torch.set_num_threads(1)

ASKS, SEARCHES = 10, 20


class CountingRunner(ModelRunner):
    """A `ModelRunner` that counts the tokens which its model reads."""

    tokens_read = 0

    def run(
        self, plan: Sequence[ScheduledTokens[SequenceState]], *, meanwhile: Callable[[], None] | None = None
    ) -> list[Sample]:
        self.tokens_read += sum(work.tokens for work in plan)
        return super().run(plan, meanwhile=meanwhile)


@dataclass(frozen=True, slots=True)
class Service:
    """The application, and the two models whose work is counted."""

    client: TestClient
    state: State
    runner: CountingRunner
    embedder: HashingEmbedder


class CountedTenant(Tenant):
    """A tenant whose requests also report the work that a cache saved."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(service.client, service.state, name)
        self._service = service

    def ask(self, number: int) -> dict[str, float] | None:
        before = self._service.runner.tokens_read
        figures = super().ask(number)
        if figures is None:
            return None
        read = self._service.runner.tokens_read - before
        return {**figures, "tokens_saved": figures["prompt_tokens"] - read}

    def search(self, question: str) -> dict[str, float]:
        before = len(self._service.embedder.embedded)
        figures = super().search(question)
        read = sum(len(text.split()) for text in self._service.embedder.embedded[before:])
        return {**figures, "words_saved": len(question.split()) - read}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = Settings(
        data_dir=installed(tmp_path_factory.mktemp("timing") / "data"), admin_key=ADMIN_KEY, _env_file=None
    )
    config = EngineConfig(model="tiny", kv_cache_bytes=256 << 20)  # room for every prompt of the module
    loaded = adopt_model(tiny_model("llama", attention="eager"), config)
    tokenizer, embedder = ChatTokenizer(tiny_tokenizer()), HashingEmbedder(max_tokens=64)
    vocab_size, eos_ids = tokenizer.vocab_size, tokenizer.eos_ids
    runner = CountingRunner(loaded, vocab_size=vocab_size, eos_ids=eos_ids)
    engine = LocalEngine(
        runner,
        tokenizer,
        config,
        info=replace(loaded.info, context_window=4000),
        eos_ids=eos_ids,
        vocab_size=vocab_size,
        constraints=ConstraintCompiler(tokenizer, eos_ids=eos_ids, vocab_size=vocab_size),
    )
    with build(settings, with_models=False) as bare:
        models = stations(
            bare,
            engine,
            tokenizer=cast(Tokenizer, tokenizer),
            embedder=embedder,
            limits=replace(ANY_EVIDENCE, max_context_tokens=600),
        )
        state = state_with(bare, models=models)
        models.worker.start()
        try:
            with TestClient(create_app(lambda: nullcontext(state), version="0")) as client:
                yield Service(client, state, runner, embedder)
        finally:
            models.worker.stop()
            engine.close()


@pytest.fixture(scope="module")
def tenants(service: Service) -> tuple[Tenant, Tenant]:
    """The victim and the attacker, with the same documents."""
    victim, attacker = CountedTenant(service, "victim"), CountedTenant(service, "attacker")
    for tenant in (victim, attacker):
        tenant.upload(range(2 * ASKS + 1))
    return victim, attacker


def assert_only_the_own_repeat_saves_work(saved: Trials, *, count: int) -> None:
    """Compare the saved work of `count` trials: across tenants, and within the attacker's tenant."""
    seen, unseen, own = (np.array(figures) for figures in (saved.seen, saved.unseen, saved.own))
    assert len(seen) == count
    assert 0.3 <= auc(unseen, seen) <= 0.7
    assert auc(unseen, own) >= 0.9, "the cache is on, so the first comparison can fail"


def test_e5_a_prompt_of_another_tenant_saves_no_tokens(tenants: tuple[Tenant, Tenant]) -> None:
    trials = ask_trials(*tenants, ASKS, random.Random(0))

    assert_only_the_own_repeat_saves_work(trials["tokens_saved"], count=ASKS)


def test_e5_a_query_of_another_tenant_saves_no_words(tenants: tuple[Tenant, Tenant]) -> None:
    trials = search_trials(*tenants, SEARCHES, random.Random(0))

    assert_only_the_own_repeat_saves_work(trials["words_saved"], count=SEARCHES)
