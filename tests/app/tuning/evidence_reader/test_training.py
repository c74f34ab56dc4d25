"""app.tuning.evidence_reader.training: a training that was interrupted ends where one that was not does."""

import io
import os
import signal

import pytest
import torch
from rich.console import Console

from app.tuning.evidence_reader import training
from app.tuning.evidence_reader.evaluate import Judge, figures, load_model
from app.tuning.evidence_reader.groups import Group, Grouper
from app.tuning.evidence_reader.mixture import order, source_of
from app.tuning.evidence_reader.run import train
from app.tuning.evidence_reader.training import Recipe, Trainer, makers, rate, start, write_weights
from retrieval.span_reader import save_reader
from tests.app.tuning.evidence_reader.shelves import TOKENIZER, base_of, write_set

STEPS = 8
RECIPE = Recipe(groups=4, averaged=0.5, learning_rate=1e-3, head_learning_rate=1e-2)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return base_of(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return source_of(write_set(tmp_path_factory.mktemp("sets") / "squad-train-44", rooms=7), held_back=False)


@pytest.fixture(scope="module")
def maker(source):
    return makers(Grouper([source], TOKENIZER, seed=2), order([source], passes=2, seed=2), RECIPE)


def trainer(base, *, recipe=RECIPE, half=False, fingerprint="one") -> Trainer:
    return Trainer(start(base, recipe), recipe, steps=STEPS, half=half, fingerprint=fingerprint)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("stopped", [2, 6])  # before and while weights are averaged
def test_a_resumed_training_ends_with_the_same_weights(base, maker, tmp_path, stopped, half):
    whole = trainer(base, half=half)
    losses = [told.loss for told in whole.run(maker)]
    first = trainer(base, half=half)
    for _ in first.run(maker):
        if first.step == stopped:
            break
    first.save_state(tmp_path / "state.pt")

    second = trainer(base, half=half)
    second.load_state(tmp_path / "state.pt")
    assert [told.loss for told in second.run(maker)] == losses[stopped:]

    assert len(losses) == STEPS
    assert second.weights.keys() == whole.weights.keys()
    assert all(torch.equal(one, second.weights[name]) for name, one in whole.weights.items())
    own, other = whole.model.state_dict(), second.model.state_dict()
    assert all(torch.equal(one, other[name]) for name, one in own.items())
    assert any(not torch.equal(one, own[name]) for name, one in whole.weights.items())


def test_the_loss_falls_and_the_embeddings_stay(base, source):
    groups = [Grouper([source], TOKENIZER, seed=1).group(at, 0, at) for at in range(4)]
    kept = [group for group in groups if group is not None]
    taught = trainer(base)
    before = {name: weight.clone() for name, weight in taught.model.state_dict().items()}
    losses = [told.loss for told in taught.run(lambda _: kept)]

    assert losses[-1] < losses[0]
    for name, weight in taught.model.state_dict().items():
        frozen = name.startswith(("encoder.embeddings.", "encoder.pooler."))
        assert torch.equal(weight, before[name]) or not frozen
        assert frozen != (name in taught.weights)


def test_a_training_can_go_on_from_a_reader_of_the_same_base(base, tmp_path):
    before = start(base, RECIPE)
    save_reader({"head.weight": before.head.weight + 1, "head.bias": before.head.bias}, tmp_path / "reader")
    save_reader({"other.weight": before.head.weight}, tmp_path / "other")

    going_on = start(base, RECIPE, reader=tmp_path / "reader")

    assert torch.allclose(going_on.head.weight, before.head.weight + 1, atol=1e-3)
    with pytest.raises(ValueError, match=r"other\.weight"):
        start(base, RECIPE, reader=tmp_path / "other")


def test_a_state_of_another_training_is_refused(base, tmp_path):
    trainer(base).save_state(tmp_path / "state.pt")

    for other in (trainer(base, fingerprint="two"), trainer(base, recipe=Recipe(groups=5))):
        with pytest.raises(ValueError, match="another recipe"):
            other.load_state(tmp_path / "state.pt")


def test_processes_share_the_groups_of_a_step(source, monkeypatch):
    grouper = Grouper([source], TOKENIZER, seed=2)
    made = makers(grouper, order([source], passes=2, seed=2), Recipe(groups=6))
    alone = made(3)
    monkeypatch.setattr(training, "workers", lambda: 2)
    shares: list[list[Group]] = []
    for worker in (0, 1):
        monkeypatch.setattr(training, "worker", lambda worker=worker: worker)
        shares.append(list(made(3)))

    assert [len(share) for share in shares] == [3, 3]
    assert sorted(map(hash, alone)) == sorted(map(hash, shares[0] + shares[1]))


def test_the_rate_goes_up_and_down():
    rates = [rate(step, 100, Recipe(warmup=0.1)) for step in range(100)]
    assert max(rates) == rates[9] == 1
    assert rates[0] == pytest.approx(0.1)
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 0.02


def test_a_checkpoint_can_be_judged(base, maker, source, tmp_path):
    taught = trainer(base)
    for _ in taught.run(maker):
        pass
    taught.save_state(tmp_path / "state.pt")
    write_weights(taught, tmp_path / "trained.safetensors")

    found = []
    for file in ("state.pt", "trained.safetensors"):
        model, said, tagged = load_model(tmp_path / file, base)
        judge = Judge(model, TOKENIZER, source)
        found.append(figures([judge.outcome(one) for one in source.questions[:6]]))
        assert said and tagged

    assert found[0] == found[1]
    assert found[0].questions == 6
    shares = (found[0].exact, found[0].f1, found[0].right_passage, found[0].apart_auc, found[0].tag_f1)
    assert all(share is not None and 0 <= share <= 1 for share in shares)


def test_a_signal_gives_up_the_step_under_way(base, maker, tmp_path):
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    whole = trainer(base)
    for _ in whole.run(maker):
        pass

    def interrupted(step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return maker(step)

    first, told, state = trainer(base), io.StringIO(), tmp_path / "state.pt"
    try:
        train(first, interrupted, Console(file=told), state=state, groups=RECIPE.groups, minutes=0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert first.step == 3
    assert "saved at step 3" in told.getvalue()
    second = trainer(base)
    second.load_state(state)
    train(second, maker, Console(file=told), state=state, groups=RECIPE.groups, minutes=9)
    for number, handler in before.items():
        signal.signal(number, handler)
    assert all(torch.equal(one, second.weights[name]) for name, one in whole.weights.items())
    assert f"step {STEPS}/{STEPS} loss" in told.getvalue()


def test_a_second_signal_does_not_interrupt_the_saving(base, maker, tmp_path):
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def interrupted(step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return maker(step)

    first = trainer(base)
    try:
        train(first, interrupted, Console(file=io.StringIO()), state=tmp_path / "state.pt", groups=4, minutes=9)
        os.kill(os.getpid(), signal.SIGTERM)  # a launcher sends one to each process, and its group another
        first.save_state(tmp_path / "state.pt")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    second = trainer(base)
    second.load_state(tmp_path / "state.pt")
    assert second.step == 3
