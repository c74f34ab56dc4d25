"""A refusal is given whole from its threshold on and not begun below it, whatever else the engine does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.abstention import RefusalConstraint, decide, refusal_probability
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler, TokenConstraint
from generation.draws import SamplingRow, draw_rows
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
from tests.generation.fakes import RecordingObserver, ScriptedRunner, read, request, scripted_engine
from tests.generation.recorder import Recorder
from tests.generation.stage import Stage, loaded, tokenizer, tokens
from tests.generation.tiny import VOCAB, tiny_model

torch.set_num_threads(1)

INF = float("inf")
ENDS = frozenset({7})
SAMPLED: list[dict[str, Any]] = [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_p": 0.9, "seed": 4}]


# --- one row of logits --------------------------------------------------------------------------


def row(abstention: Abstention | None, *, mask: Tensor | None = None, **params: Any) -> SamplingRow:
    return SamplingRow(
        params=SamplingParams(max_tokens=1, **params),
        seed=5,
        position=3,
        prompt=(1, 2),
        output=(),
        mask=mask,
        abstention=abstention,
    )


@given(
    logits=st.lists(st.floats(-30, 30, width=32), min_size=3, max_size=12),
    first=st.integers(0, 2),
    threshold=st.floats(0, 1, exclude_min=True),
    temperature=st.sampled_from([0.0, 0.7, 5.0]),
    bias=st.sampled_from([0.0, 50.0, -50.0]),
    allowed=st.sets(st.integers(0, 2), min_size=1),
)
def test_from_the_threshold_on_the_refusal_begins_and_below_it_something_else_that_is_allowed(
    logits: list[float], first: int, threshold: float, temperature: float, bias: float, allowed: set[int]
) -> None:
    raw = torch.tensor([logits])
    mask = torch.tensor([token in allowed for token in range(len(logits))])
    expected = float(torch.softmax(raw[0].masked_fill(~mask, -INF).double(), 0)[first])
    asked = row(Abstention((first, 1), threshold), mask=mask, temperature=temperature, logit_bias=((first, bias),))

    (drawn,) = draw_rows(raw, [asked])

    assert drawn.token is not None
    assert drawn.token in allowed
    assert drawn.abstention == expected
    assert (drawn.token == first) == (expected >= threshold)


@given(
    seed=st.integers(0, 2**32),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    top_k=st.sampled_from([0, 3]),
    logprobs=st.sampled_from([None, 2]),
)
def test_without_a_threshold_the_draw_is_what_it_would_have_been(
    seed: int, temperature: float, top_k: int, logprobs: int | None
) -> None:
    logits = 3 * torch.randn(3, 40, generator=torch.Generator().manual_seed(seed))
    watched = row(Abstention((9,)), temperature=temperature, top_k=top_k, logprobs=logprobs)
    plain = replace(watched, abstention=None)

    mixed, alone = draw_rows(logits, [watched, plain, watched]), draw_rows(logits, [plain] * 3)

    assert [(draw.token, draw.logprob) for draw in mixed] == [(draw.token, draw.logprob) for draw in alone]
    assert mixed[1].abstention is None
    for n in (0, 2):
        assert mixed[n].abstention == float(logits[n].double().softmax(0)[9])


def test_a_model_that_gives_no_numbers_neither_refuses_nor_reports() -> None:
    (drawn,) = draw_rows(torch.full((1, 4), float("nan")), [row(Abstention((1,), 0.5))])

    assert drawn.token is None
    assert drawn.abstention is None


def test_the_only_allowed_token_is_given_at_any_threshold_and_a_forbidden_one_at_none() -> None:
    logits = torch.tensor([-1e30, 2.0, 5.0])
    only = torch.tensor([True, False, False])
    sure = refusal_probability(logits, 0, mask=only)
    never = refusal_probability(logits, 0, mask=~only)
    masked, others = logits.masked_fill(~only, -INF), logits.masked_fill(only, -INF)

    assert (float(sure), float(never)) == (1.0, 0.0)
    assert decide(masked, 0, probability=sure, threshold=1.0).isfinite().tolist() == [True, False, False]
    assert decide(others, 0, probability=never, threshold=5e-324).isfinite().tolist() == [False, True, True]


# --- the state machine --------------------------------------------------------------------------


def allowed_ids(constraint: TokenConstraint) -> list[int] | None:
    mask = constraint.mask()
    return None if mask is None else mask.nonzero()[:, 0].tolist()


def refusing(*refusal: int, otherwise: TokenConstraint | None = None) -> RefusalConstraint:
    return RefusalConstraint(refusal, otherwise=otherwise, eos_ids=frozenset({7, 8}), vocab_size=20)


def test_a_refusal_that_has_begun_is_said_whole_and_then_ends() -> None:
    constraint = refusing(3, 4, 3)
    assert allowed_ids(constraint) is None
    for said, due in ((3, [4]), (4, [3]), (3, [7, 8]), (8, [7, 8])):
        constraint.advance(said)

        assert allowed_ids(constraint) == due
        assert [token for token in range(20) if constraint.allows(token)] == due


def test_any_other_beginning_is_free_of_the_refusal_even_where_its_token_comes_later() -> None:
    constraint = refusing(3, 4)
    for token in (9, 3, 12):
        constraint.advance(token)

        assert allowed_ids(constraint) is None
        assert constraint.allows(5)


def test_an_answer_keeps_the_constraint_it_had_and_a_refusal_does_not_move_it() -> None:
    ids = tokenizer()
    compiler = ConstraintCompiler(ids, eos_ids=ids.eos_ids, vocab_size=ids.vocab_size)
    (space,), (letter,), (bracket,) = ids.encode(" "), ids.encode("x"), ids.encode("[")

    def constraint() -> RefusalConstraint:
        return RefusalConstraint(
            (letter, bracket),
            otherwise=compiler.compile(CitationMarkers(2)),
            eos_ids=ids.eos_ids,
            vocab_size=ids.vocab_size,
        )

    answer, refusal, plain = constraint(), constraint(), compiler.compile(CitationMarkers(2))
    assert allowed_ids(answer) == allowed_ids(plain)
    for token in (space, bracket):
        answer.advance(token)
        plain.advance(token)
        assert allowed_ids(answer) == allowed_ids(plain)
    refusal.advance(letter)
    refusal.advance(bracket)

    assert not answer.allows(letter)
    assert allowed_ids(refusal) == sorted(ids.eos_ids)


def test_a_clone_looks_ahead_without_moving_the_sequence() -> None:
    constraint = refusing(3, 4)
    constraint.advance(3)
    ahead = constraint.clone()
    ahead.advance(4)

    assert (allowed_ids(constraint), allowed_ids(ahead)) == ([4], [7, 8])
    with pytest.raises(AssertionError, match="forbids"):
        constraint.advance(5)


# --- the engine against the slow reference --------------------------------------------------------


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


@settings(deadline=None, max_examples=40)
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


# --- through the engine's door ----------------------------------------------------------------------


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


async def test_a_prompt_from_the_cache_scores_as_it_did(engine: LocalEngine) -> None:
    _, first = await ask(engine, watching(None))
    _, again = await ask(engine, watching(None))

    assert again.cached_tokens > 0
    assert again.abstention == pytest.approx(first.abstention)


async def test_nothing_is_reported_that_was_not_asked_for(engine: LocalEngine) -> None:
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


def test_a_refusal_has_words_and_may_be_said() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        Abstention(())
    with pytest.raises(ValueError, match="allowed_tokens"):
        GenerationRequest("r", (1,), SamplingParams(max_tokens=1, allowed_tokens=(3,)), abstention=Abstention((3,)))
