"""Abstention in a running engine: batched, drafted, cached, preempted and streamed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.abstention import RefusalConstraint
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.memory import Layout
from generation.runner import ModelRunner
from generation.sampling import sample
from generation.sequence import SequenceState
from generation.speculation import SpeculationPolicy
from generation.speculator import Speculator
from generation.types import (
    Abstention,
    CitationMarkers,
    Completion,
    Delta,
    FinishReason,
    GenerationRequest,
    SamplingParams,
)
from tests.examples import examples
from tests.generation.fakes import RecordingObserver, ScriptedRunner, read, request, scripted_engine
from tests.generation.recorder import Recorder
from tests.generation.stage import Stage, loaded, tokenizer, tokens
from tests.generation.tiny import VOCAB, tiny_model

torch.set_num_threads(1)

INF = float("inf")

ENDS = frozenset({7})


SAMPLED: list[dict[str, Any]] = [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_p": 0.9, "seed": 4}]


@cache
def next_logits(known: tuple[int, ...]) -> Tensor:
    """[VOCAB] float32 after these tokens, everything computed anew by transformers."""
    model: Any = _model()
    with torch.inference_mode():
        logits: Tensor = model(input_ids=torch.tensor([known])).logits[0, -1, :VOCAB].float()
    return logits


@cache
def _model() -> Any:
    return tiny_model("llama", attention="eager")


def reference(asked: GenerationRequest) -> tuple[tuple[int, ...], float]:
    """The tokens and the refusal's probability, one token at a time and from the definition."""
    watched, params = asked.abstention, asked.sampling
    assert watched is not None
    said: list[int] = []
    probability, refuses = -1.0, False
    while len(said) < params.max_tokens and not (said and said[-1] in ENDS):
        logits = next_logits((*asked.prompt, *said)).clone()
        if not said:
            probability = float(logits.double().softmax(0)[watched.tokens[0]])
            refuses = watched.threshold is not None and probability >= watched.threshold
            if watched.threshold is not None and not refuses:
                logits[watched.tokens[0]] = -INF
        if refuses:
            due = {watched.tokens[len(said)]} if len(said) < len(watched.tokens) else ENDS
            logits = torch.where(torch.tensor([token in due for token in range(VOCAB)]), logits, -INF)
        said.append(int(sample(logits, params, seed=params.seed or 0, position=len(asked.prompt) + len(said))))
    return tuple(said), probability


@dataclass(frozen=True)
class Asked:
    """Whom to ask and how; the refusal begins with the model's `rank`-th best first token."""

    shared: int
    own: int
    rank: int
    leans: float | None  # the threshold over the probability
    sampling: int
    outputs: int
    arrives: int

    @property
    def request(self) -> GenerationRequest:
        prompt = tokens(self.shared, seed=1) + tokens(self.own, seed=100 + self.own)
        logits = next_logits(prompt)
        first = int(logits.topk(self.rank).indices[-1])
        threshold = None
        if self.leans is not None:
            threshold = min(1.0, self.leans * float(logits.double().softmax(0)[first]))
        return GenerationRequest(
            "r",
            prompt,
            SamplingParams(max_tokens=self.outputs, **SAMPLED[self.sampling]),
            abstention=Abstention((first, 40, 41, first), threshold),
        )


class Prompter:
    """Drafts what the reference says, now and then with a mistake, at the first position too."""

    def propose(self, sequences: Sequence[SequenceState], *, budget: int) -> list[list[int]]:
        drafts = []
        for sequence in sequences:
            said, _ = reference(sequence.request)
            at = len(sequence.generated)
            draft = [*said[at : at + (at + 2) % 4], 5][: min(budget, 4)]
            budget -= len(draft)
            drafts.append(draft)
        return drafts

    def observe(self, *, rows: int, seconds: float) -> None:
        """Nothing to learn."""


ASKED = st.builds(
    Asked,
    shared=st.integers(1, 30),
    own=st.integers(0, 12),
    rank=st.integers(1, 3),
    leans=st.sampled_from([None, 0.5, 0.9, 1.1, 3.0]),
    sampling=st.integers(0, len(SAMPLED) - 1),
    outputs=st.integers(1, 9),
    arrives=st.integers(0, 6),
)


def whole(shared: int, *, own: int = 0, rank: int = 1, outputs: int = 1) -> Asked:
    return Asked(shared=shared, own=own, rank=rank, leans=None, sampling=0, outputs=outputs, arrives=0)


# The last needs 11 of the 14 blocks, and could copy 6 of the 7 that are cached by then.
@example(
    requests=[whole(12, rank=3, outputs=8), whole(24), whole(30, own=12)],
    capacity_blocks=14,
    max_running=1,
    extra_tokens=0,
    reuse=True,
    drafts=False,
    layout="slabs",
    graphs=False,
)
@settings(deadline=None, max_examples=examples(40))
@given(
    requests=st.lists(ASKED, min_size=1, max_size=5),
    capacity_blocks=st.sampled_from([14, 40]),
    max_running=st.integers(1, 4),
    extra_tokens=st.integers(0, 30),
    reuse=st.booleans(),
    drafts=st.booleans(),
    layout=st.sampled_from(["slabs", "pages"]),
    graphs=st.booleans(),
)
def test_batched_drafted_cached_preempted_or_graphed_it_decides_as_the_reference_does(
    requests: list[Asked],
    capacity_blocks: int,
    max_running: int,
    extra_tokens: int,
    reuse: bool,
    drafts: bool,
    layout: Layout,
    graphs: bool,
) -> None:
    stage = Stage(
        capacity_blocks=capacity_blocks,
        max_running=max_running,
        step_tokens=max_running + extra_tokens,
        reuse=reuse,
        drafts=drafts,
        layout=layout,
        capture=Recorder() if graphs else None,
        eos_ids=ENDS,
        speculation=Prompter(),
    )
    waiting = [(asked.arrives, asked.request) for asked in requests]
    running: list[tuple[GenerationRequest, RecordingObserver]] = []
    turn = 0
    while stage.busy or waiting:
        for arrived in [arriving for arriving in waiting if arriving[0] <= turn]:
            waiting.remove(arrived)
            asked = arrived[1]
            assert asked.abstention is not None
            constraint = None
            if asked.abstention.threshold is not None:
                constraint = RefusalConstraint(asked.abstention.tokens, otherwise=None, eos_ids=ENDS, vocab_size=VOCAB)
            running.append((asked, stage.enter(asked, constraint=constraint)[1]))
        stage.turn()
        turn += 1
        assert turn < 2000, "it goes on for ever"
    stage.finisher.close()

    for asked, observer in running:
        done = observer.wait()
        said, probability = reference(asked)
        assert done.token_ids == said
        assert done.abstention == pytest.approx(probability, rel=1e-3)


@pytest.fixture
def engine() -> Any:
    ids, model = tokenizer(), loaded(64)
    made = LocalEngine(
        ModelRunner(model, vocab_size=ids.vocab_size, eos_ids=ids.eos_ids, block_tokens=4),
        ids,
        EngineConfig(model="tiny"),
        info=model.info,
        eos_ids=ids.eos_ids,
        vocab_size=ids.vocab_size,
        constraints=ConstraintCompiler(ids, eos_ids=ids.eos_ids, vocab_size=ids.vocab_size),
        speculation=Speculator(SpeculationPolicy()),
    )
    yield made
    made.close()


async def ask(engine: LocalEngine, asked: GenerationRequest) -> tuple[list[Delta], Completion]:
    return await read(engine.submit(asked, observer=RecordingObserver()))


REFUSAL = "no idea, sorry."


def watching(threshold: float | None) -> GenerationRequest:
    ids = tokenizer()
    return replace(
        request(prompt=range(5, 30), max_tokens=40),
        abstention=Abstention(tuple(ids.encode(REFUSAL)), threshold),
        constraint=CitationMarkers(2),
    )


async def test_the_text_is_exactly_the_refusal_streamed_or_not_and_the_score_is_there_either_way(
    engine: LocalEngine,
) -> None:
    deltas, refused = await ask(engine, watching(1e-30))
    _, answered = await ask(engine, watching(1.0))
    _, free = await ask(engine, watching(None))

    assert refused.text == REFUSAL == "".join(delta.text for delta in deltas)
    assert refused.finish_reason is FinishReason.STOP
    assert not answered.text.startswith(REFUSAL[0])
    assert answered.token_ids == free.token_ids, "this model would not have refused"
    assert refused.abstention is not None
    assert 0 < refused.abstention < 1
    assert answered.abstention == pytest.approx(refused.abstention)
    assert free.abstention == pytest.approx(refused.abstention)


async def test_a_cached_prompt_gets_the_same_abstention_score(engine: LocalEngine) -> None:
    _, first = await ask(engine, watching(None))
    _, again = await ask(engine, watching(None))

    assert again.cached_tokens > 0
    assert again.abstention == pytest.approx(first.abstention)


async def test_no_abstention_score_is_reported_unless_requested(engine: LocalEngine) -> None:
    _, done = await ask(engine, replace(watching(None), abstention=None))

    assert done.abstention is None


async def test_a_sequence_that_drew_nothing_has_no_score() -> None:
    made = scripted_engine(ScriptedRunner(before_step=_fail))
    try:
        asked = replace(request(), abstention=Abstention((65, 66)))
        _, done = await read(made.submit(asked, observer=RecordingObserver()))
    finally:
        made.close()

    assert done.finish_reason is FinishReason.ERROR
    assert done.abstention is None


def _fail(plan: object) -> None:
    raise RuntimeError("the model is on fire")


def test_a_refusal_the_model_cannot_say_is_refused_before_anything_is_counted(engine: LocalEngine) -> None:
    for token in (-1, tokenizer().vocab_size):
        with pytest.raises(ValueError, match="refusal"):
            engine.submit(replace(request(), abstention=Abstention((5, token))), observer=RecordingObserver())

    assert engine.stats().requests == 0


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.1, float("nan")])
def test_a_threshold_is_a_probability_above_zero(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        Abstention((1,), threshold)


def test_an_empty_or_disallowed_refusal_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        Abstention(())
    with pytest.raises(ValueError, match="allowed_tokens"):
        GenerationRequest("r", (1,), SamplingParams(max_tokens=1, allowed_tokens=(3,)), abstention=Abstention((3,)))
