"""app.tuning.span_reader.training learns a toy task, alone or shared, in one go or two."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.multiprocessing.spawn import spawn

from app.tuning.span_reader.training import Pair, Recipe, Trainer, rate, start, target_of, trained_weights
from retrieval.span_model import MOST_ANSWER_TOKENS, SpanModel, best_span
from tests.retrieval.reader_folder import SPECIAL, build_base, tokenizer

RECIPE = Recipe(frozen_layers=1, batch=4, steps=6, learning_rate=3e-3, head_learning_rate=1e-2, warmup=0.2, seed=3)
LETTERS = "abcdefgh"
VOCABULARY = [*SPECIAL, "gold", "tin", "lead", "of", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
TOKENIZER = tokenizer(VOCABULARY)
TOKENIZER.no_truncation()
TOKENIZER.no_padding()
QUESTION = "where is it"


def pair(passage: str) -> Pair:
    """Answered by the word "gold" where the passage has it."""
    at = passage.find("gold")
    return Pair(QUESTION, passage, (at, at + 4) if at >= 0 else None)


PAIRS = [
    pair("tin of lead gold tin"),
    pair("gold lead"),
    pair("lead tin"),
    pair("tin of gold of tin lead"),
    pair("of tin of tin"),
    pair("lead of gold"),
]
TARGETS = [target for one in PAIRS if (target := target_of(TOKENIZER, one))]
BATCHES = [TARGETS[:4], TARGETS[2:], TARGETS[1:5]]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build_base(tmp_path_factory.mktemp("base"), vocabulary=VOCABULARY)


def trained(base: Path, recipe: Recipe) -> tuple[Trainer, list[float]]:
    trainer = Trainer(start(base, recipe), recipe)
    return trainer, list(trainer.run(itertools.cycle(BATCHES)))


def test_training_lowers_the_loss_until_the_answers_are_found(base):
    trainer, losses = trained(base, replace(RECIPE, steps=80))

    assert len(losses) == 80
    assert sum(losses[-5:]) < 0.2 * sum(losses[:5])
    trainer.model.eval()
    with torch.inference_mode():
        starts, ends = trainer.model([target.window for target in TARGETS])
    for place, target in enumerate(TARGETS):
        first, last, margin = best_span(starts[place], ends[place])
        assert (margin > 0) == (target.start > 0)
        assert not target.start or (first, last) == (target.start, target.end)


def test_training_leaves_embeddings_and_the_lowest_layers_alone(base):
    before = dict(start(base, RECIPE).named_parameters())
    after = dict(trained(base, RECIPE)[0].model.named_parameters())

    moved = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert moved == set(trained_weights(start(base, RECIPE)))
    assert not any(name.startswith(("encoder.embeddings.", "encoder.encoder.layer.0.")) for name in moved)
    assert any(name.startswith("encoder.encoder.layer.1.") for name in moved)
    assert {"head.weight", "head.bias"} <= moved


def test_a_run_taken_up_where_it_stopped_ends_as_one_that_was_never_interrupted(base, tmp_path):
    whole, losses = trained(base, RECIPE)

    first = Trainer(start(base, RECIPE), RECIPE)
    steps = first.run(itertools.cycle(BATCHES))
    begun = [next(steps) for _ in range(4)]
    first.save_state(tmp_path / "state.pt")
    second = Trainer(start(base, replace(RECIPE, seed=99)), RECIPE)
    second.load_state(tmp_path / "state.pt")
    assert second.step == 4
    ended = list(second.run(itertools.islice(itertools.cycle(BATCHES), 4, None)))

    assert begun + ended == pytest.approx(losses, rel=1e-5)
    same = trained_weights(second.model)
    for name, weight in trained_weights(whole.model).items():
        assert torch.allclose(weight, same[name], atol=1e-6), name


def test_a_finished_run_takes_no_batch_more(base, tmp_path):
    trained(base, RECIPE)[0].save_state(tmp_path / "state.pt")
    again = Trainer(start(base, RECIPE), RECIPE)
    again.load_state(tmp_path / "state.pt")

    assert list(again.run(iter(()))) == []


def probabilities(model: SpanModel) -> list[torch.Tensor]:
    """Of beginning and of ending at each token of the targets' windows."""
    with torch.inference_mode():
        return [scores.softmax(-1) for scores in model([target.window for target in TARGETS])]


def _train_beside(rank: int, workers: int, base: str, meeting: str, out: str) -> None:
    """One of several processes; what it learnt is written down."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers)
    trainer, _ = trained(Path(base), replace(RECIPE, steps=3))
    torch.save(trained_weights(trainer.model), f"{out}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_processes_that_share_their_batches_learn_what_one_would(base, tmp_path):
    recipe = replace(RECIPE, steps=3)
    spawn(_train_beside, args=(2, str(base), str(tmp_path / "meeting"), str(tmp_path)), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    alone, _ = trained(base, recipe)
    shared = start(base, recipe)
    shared.load_state_dict(first, strict=False)

    assert all(torch.equal(weight, second[name]) for name, weight in first.items())
    # Weights that change no probability (biases of keys and of the head) have gradients of rounding errors alone,
    # which AdamW blows up: probabilities are compared.
    untrained = start(base, recipe)
    for one, both, before in zip(*(probabilities(model) for model in (alone.model, shared, untrained)), strict=True):
        assert torch.allclose(one, both, atol=2e-3)
        assert not torch.allclose(one, before, atol=2e-2)


def test_the_rate_climbs_and_then_falls():
    rates = [rate(step, Recipe(steps=100, warmup=0.1)) for step in range(100)]

    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert max(rates) == pytest.approx(1)
    assert 0 < rates[-1] < 0.05


words = st.text(alphabet=LETTERS, min_size=1, max_size=6)


@settings(deadline=None, max_examples=50)
@given(passage=st.lists(words, min_size=1, max_size=200), data=st.data())
def test_a_target_is_the_answer_wherever_it_stands(passage, data):
    """Answers of at most the overlap are whole in some window."""
    first = data.draw(st.integers(0, len(passage) - 1))
    last = data.draw(st.integers(first, min(len(passage), first + MOST_ANSWER_TOKENS // 6) - 1 if first else 0))
    text = " ".join(passage)
    begins = [len(" ".join(passage[:place])) + bool(place) for place in range(len(passage))]
    answer = (begins[first], begins[last] + len(passage[last]))

    target = target_of(TOKENIZER, Pair(QUESTION, text, answer))

    assert target is not None
    offsets = target.window.offsets
    from_, to = target.start - target.window.first, target.end - target.window.first
    assert (offsets[from_][0], offsets[to][1]) == answer


def test_without_an_answer_the_target_is_none_in_the_first_window():
    target = target_of(TOKENIZER, Pair(QUESTION, "tin " * 400, None))

    assert target is not None
    assert (target.start, target.end) == (0, 0)
    assert target.window.offsets[0] == (0, 3)


@pytest.mark.parametrize("answer", [None, (0, 1)])
def test_a_passage_without_text_gives_no_target(answer):
    assert target_of(TOKENIZER, Pair(QUESTION, " ", answer)) is None
