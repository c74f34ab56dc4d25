"""generation.tuning: a pack reads as its sequences do one by one, and training it moves the adapter alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.multiprocessing.spawn import spawn

from app.tuning.adapter.pack import Branch, Pack, common_prefix
from app.tuning.adapter.training import Recipe, Trainer, rate, read, save, start
from retrieval.branch_attention import IMPLEMENTATION
from tests.generation.tiny import tiny_model

pytest.importorskip("peft", reason="peft is a development tool")
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks for it
RECIPE = Recipe(rank=4, first_layer=1, steps=6, learning_rate=1e-2, seed=3)

PACKS = [
    Pack((7, 8, 9, 10), (Branch((11, 12), (13, 14, 2)), Branch((15,), (16, 2)))),
    Pack((7, 8, 9), (Branch((21, 22), (23, 2)),)),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    tiny_model("llama", attention="sdpa").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(base):
    return start(base, RECIPE)


ids = st.lists(st.integers(5, 60), min_size=1, max_size=7).map(tuple)
packs = st.builds(Pack, ids, st.lists(st.builds(Branch, ids, ids), min_size=1, max_size=4).map(tuple))


@settings(deadline=None, max_examples=25)
@given(pack=packs)
def test_a_pack_reads_as_its_sequences_one_by_one(model, pack):
    whole = model.get_base_model()
    with torch.no_grad():
        packed = read(model, pack)
        whole.set_attn_implementation("sdpa")
        try:
            losses, right = [], []
            for branch in pack.branches:
                sequence = torch.tensor([*pack.prefix, *branch.prompt, *branch.answer])
                count = len(branch.answer)
                logits = whole(input_ids=sequence[None]).logits[0, -count - 1 : -1]
                losses.append(torch.nn.functional.cross_entropy(logits, sequence[-count:], reduction="none"))
                right.append(bool((logits.argmax(-1) == sequence[-count:]).all()))
        finally:
            whole.set_attn_implementation(IMPLEMENTATION)

    assert torch.allclose(packed.loss, torch.cat(losses).mean(), atol=1e-5)
    assert packed.right == tuple(right)


def test_training_learns_its_pack_and_goes_on_where_it_stopped(base, tmp_path):
    whole = Trainer(start(base, RECIPE), RECIPE)
    losses = [float(found.loss) for found in whole.run(PACKS)]

    half = Trainer(start(base, RECIPE), RECIPE)
    steps = half.run(PACKS)
    first = [float(next(steps).loss) for _ in range(3)]
    half.save_state(tmp_path / "state.pt")
    resumed = Trainer(start(base, RECIPE), RECIPE)
    resumed.load_state(tmp_path / "state.pt")
    rest = [float(found.loss) for found in resumed.run(PACKS)]

    assert losses[-2] < losses[0]
    assert first + rest == pytest.approx(losses)


def test_what_is_saved_is_the_adapter_of_the_upper_layers_in_half_precision(model, tmp_path):
    from safetensors.torch import load_file

    save(model, tmp_path, base="tiny")
    tensors = load_file(tmp_path / "adapter_model.safetensors")

    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert all(".layers.0." not in name and "lora_" in name for name in tensors)
    assert any(".layers.1.mlp.down_proj." in name for name in tensors)


def test_the_common_prefix_leaves_every_prompt_something():
    assert common_prefix([(1, 2, 3, 4), (1, 2, 5)]) == 2
    assert common_prefix([(1, 2), (1, 2, 3)]) == 1


def test_the_rate_climbs_and_then_falls():
    rates = [rate(step, Recipe(steps=100, warmup=0.1)) for step in range(100)]

    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert max(rates) == pytest.approx(1)
    assert min(rates[10:]) >= 0.05


def _train_beside(rank: int, workers: int, base: str, meeting: str, out: str) -> None:
    """One of several processes; what it learnt is written down."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers)
    recipe = replace(RECIPE, steps=3, packs=3)
    trainer = Trainer(start(Path(base), recipe), recipe)
    for _ in trainer.run(PACKS):
        pass
    torch.save([w.detach() for w in trainer.model.parameters() if w.requires_grad], f"{out}/{workers}-{rank}.pt")
    torch.distributed.destroy_process_group()


def test_processes_that_share_their_packs_learn_what_one_would(base, tmp_path):
    for workers in (1, 2):
        meeting = str(tmp_path / f"meeting-{workers}")
        spawn(_train_beside, args=(workers, str(base), meeting, str(tmp_path)), nprocs=workers)
    alone, first, second = (torch.load(tmp_path / f"{name}.pt") for name in ("1-0", "2-0", "2-1"))

    for one, other, same in zip(alone, first, second, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
        assert torch.equal(other, same)


def test_a_recipe_has_a_pack_for_every_process():
    with pytest.raises(ValueError, match="0"):
        Trainer(torch.nn.Linear(1, 1), replace(RECIPE, packs=0))
