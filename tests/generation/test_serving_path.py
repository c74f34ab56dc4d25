"""The engine says what computes its steps, drafts where that pays, and works in the context it is given."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.runner import ModelRunner
from generation.speculation import SpeculationPolicy
from generation.speculator import Speculator
from generation.step import Runner
from generation.types import ServingPath
from tests.generation.fakes import RecordingObserver, ScriptedRunner, read, request
from tests.generation.graphed import ROOMY, counting_graphs
from tests.generation.recorder import Recorder, Refusing
from tests.generation.stage import loaded, tokenizer
from tests.generation.tiny import VOCAB

torch.set_num_threads(1)


@pytest.fixture
def serving() -> Iterator[Callable[..., LocalEngine]]:
    made: list[LocalEngine] = []

    def serve(runner: Runner, **rest: object) -> LocalEngine:
        engine = LocalEngine(
            runner,
            tokenizer(),
            EngineConfig(model="tiny"),
            info=loaded(ROOMY).info,
            eos_ids=frozenset(),
            vocab_size=VOCAB,
            **rest,  # type: ignore[arg-type]
        )
        made.append(engine)
        return engine

    yield serve
    for engine in made:
        engine.close()


def paged(capture: Recorder | Refusing | None, *, cuda: bool = False) -> ModelRunner:
    model = loaded(ROOMY)
    runner = ModelRunner(model, vocab_size=VOCAB, block_tokens=4, layout="pages", capture=capture)
    runner._on_cuda = cuda  # noqa: SLF001 - the tensors stay where they are
    return runner


def test_a_cpu_is_served_from_slabs_and_nothing_is_faster() -> None:
    runner = ModelRunner(loaded(ROOMY), vocab_size=VOCAB)

    assert runner.path(speculation=True) == ServingPath(
        layout="slabs", kernels="torch", graphs=False, speculation=True, slower=()
    )


def test_a_gpu_is_served_from_pages_by_kernels_and_graphs() -> None:
    assert paged(Recorder(), cuda=True).path(speculation=False) == ServingPath(
        layout="pages", kernels="triton", graphs=True, speculation=False, slower=()
    )


def test_every_reason_for_a_slower_path_is_told() -> None:
    refused = paged(Refusing())
    refused.prepare(rows=1, tokens=100)
    slabs = ModelRunner(loaded(ROOMY), vocab_size=VOCAB, capture=Recorder())
    slabs._memory.why = "No compiler."  # type: ignore[attr-defined]  # noqa: SLF001 - as memory_of has it on a GPU

    assert refused.path(speculation=True).slower == (
        "Decode steps cannot be captured as CUDA graphs here; the log says more.",
    )
    assert slabs.path(speculation=True).slower == ("No compiler.",)
    assert not slabs.path(speculation=True).graphs
    assert slabs.path(speculation=True, unused_gpu="Too old.").slower == ("Too old.", "No compiler.")


def test_an_engine_after_the_one_whose_graphs_failed_says_so() -> None:
    capture = Refusing()
    paged(capture).prepare(rows=1, tokens=100)

    [why] = paged(capture).path(speculation=True).slower

    assert why == "CUDA graphs failed before the engine was restarted; the log says more."


def test_graphs_that_were_given_up_say_why() -> None:
    graphs, _, _ = counting_graphs(Recorder())
    assert graphs.why_off is None

    graphs.give_up("First.")
    graphs.give_up("Second.")

    assert graphs.why_off == "First."


@pytest.mark.parametrize("replays", [True, False])
async def test_tokens_are_drafted_only_while_no_graphs_are_replayed(
    replays: bool, serving: Callable[..., LocalEngine]
) -> None:
    """A prompt that repeats itself, greedily continued: drafts are certain to be made where they are allowed."""
    capture = Recorder()
    runner = paged(capture)
    if not replays:
        capture.trusted = False
    speculator = Speculator(SpeculationPolicy(loss_share=0.99), paused=lambda: runner.replays)
    engine = serving(runner, speculation=speculator, path=lambda: runner.path(speculation=not speculator.paused()))
    asked = request(prompt=[3, 4, 5, 6] * 8, max_tokens=48, ignore_eos=True)

    _, done = await read(engine.submit(asked, observer=RecordingObserver()))

    assert len(done.token_ids) == 48
    assert (engine.stats().drafted_tokens == 0) is replays
    assert (capture.replays > 40) is replays
    path = engine.stats().path
    assert path is not None and path.speculation is not replays and path.graphs is replays


async def test_the_models_thread_lives_in_the_context_it_was_given(start: Callable[..., LocalEngine]) -> None:
    events: list[tuple[str, str]] = []

    @contextmanager
    def working() -> Iterator[None]:
        events.append(("enter", threading.current_thread().name))
        yield
        events.append(("exit", threading.current_thread().name))

    def step(_: object) -> None:
        events.append(("step", threading.current_thread().name))

    engine = LocalEngine(
        ScriptedRunner("ab", before_step=step),
        tokenizer(),
        EngineConfig(model="m"),
        info=replace(loaded(ROOMY).info, context_window=1000),
        eos_ids=frozenset({0}),
        vocab_size=VOCAB,
        working=working,
    )
    await read(engine.submit(request(prompt=[1], max_tokens=2), observer=RecordingObserver()))
    engine.close()

    assert [event for event, _ in events] == ["enter", "step", "step", "exit"]
    assert {thread for _, thread in events} == {"footnote-engine"}
