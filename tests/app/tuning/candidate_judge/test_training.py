"""app.tuning.candidate_judge: a judge learns, goes on where it stopped, and ships as it was trained."""

from pathlib import Path

import pytest
import torch

from app.tuning.candidate_judge.ballots import Ballot
from app.tuning.candidate_judge.model import JudgeModel, loss_of, told
from app.tuning.candidate_judge.publish import Reached, card_of, save_judge
from app.tuning.candidate_judge.run import Recipe, Trainer, rate
from retrieval.candidate_judge import LanguageModelJudge
from retrieval.judge_layout import JudgedText, layout
from retrieval.plain_tokenizer import plain_tokenizer
from tests.retrieval.judge_folder import build_language_model

RECIPE = Recipe(rank=2, steps=8, ballots=2, learning_rate=1e-2, head_learning_rate=1e-2)
BALLOTS = (
    Ballot(
        "when did the plant close ?", (JudgedText("", "", "closed on 4 May"), JudgedText("", "", "rose")), (True, False)
    ),
    Ballot("who fell ?", (JudgedText("Acme", "it rose .", "closed"), JudgedText("", "", "revenue")), (False, False)),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_language_model(tmp_path_factory.mktemp("models") / "base")


def trainer(base: Path) -> Trainer:
    torch.manual_seed(3)
    return Trainer(JudgeModel.from_base(base, rank=2, half=False, layers=3), RECIPE)


@pytest.fixture(scope="module")
def step(base: Path):
    tokenizer = plain_tokenizer(base)
    return [(one, layout(tokenizer, one.question, one.candidates)) for one in BALLOTS]


def test_the_loss_falls_and_the_base_stays(base, step):
    taught = trainer(base)
    before = {name: weight.clone() for name, weight in taught.model.state_dict().items()}
    losses = [taught.learn(step).loss for _ in range(RECIPE.steps)]

    assert losses[-1] < 0.6 * losses[0]
    changed = {name for name, weight in taught.model.state_dict().items() if not torch.equal(weight, before[name])}
    assert changed == taught.model.trained().keys()
    assert taught.learn(step).right == 1.0  # of two questions, both


def test_a_training_that_was_interrupted_ends_where_one_that_was_not_does(base, step, tmp_path):
    whole = trainer(base)
    losses = [whole.learn(step).loss for _ in range(RECIPE.steps)]
    first = trainer(base)
    for _ in range(3):
        first.learn(step)
    first.save_state(tmp_path / "state.pt")

    second = trainer(base)
    second.load_state(tmp_path / "state.pt")

    assert [second.learn(step).loss for _ in range(3, RECIPE.steps)] == losses[3:]
    assert all(torch.equal(one, second.model.trained()[name]) for name, one in whole.model.trained().items())


def test_what_ships_judges_as_it_did_in_training(base, step, tmp_path):
    taught = trainer(base)
    for _ in range(RECIPE.steps):
        taught.learn(step)
    save_judge(taught.model.trained(), tmp_path / "judge")

    judge = LanguageModelJudge.load(tmp_path / "judge", base, device="cpu", dtype="float32")

    for ballot, laid_out in step:
        with torch.no_grad():
            expected = taught.model(laid_out).tolist()
        assert judge.judge(ballot.question, ballot.candidates) == pytest.approx(expected, abs=0.02)  # half precision


def test_a_weight_beyond_half_precision_is_refused(base, tmp_path):
    with pytest.raises(ValueError, match="half precision"):
        save_judge({"head.weight": torch.tensor([[1e6]])}, tmp_path)


@pytest.mark.parametrize(
    ("scores", "right", "is_told"),
    [
        ([3.0, -2.0], (True, False), True),
        ([-3.0, 2.0], (True, False), False),
        ([-1.0, -2.0], (False, False), True),
        ([1.0, -2.0], (False, False), False),
        ([-1.0, -2.0], (True, False), False),
    ],
)
def test_what_is_told_is_the_likeliest_candidate_or_none(scores, right, is_told):
    ballot = Ballot("who ?", BALLOTS[0].candidates, right)

    assert told(torch.tensor(scores), ballot) == is_told


def test_the_loss_is_small_where_the_right_candidates_are_far_above_none_and_the_others_far_below():
    assert float(loss_of(torch.tensor([20.0, -20.0, 20.0]), (True, False, True))) < 1e-6
    assert float(loss_of(torch.tensor([-20.0, -20.0]), (False, False))) < 1e-6
    assert float(loss_of(torch.tensor([-20.0, 20.0]), (True, False))) > 20


def test_the_rate_goes_up_and_down():
    rates = [rate(step, Recipe(steps=100, warmup=0.1)) for step in range(100)]

    assert max(rates) == rates[9] == 1
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)


def test_a_training_goes_on_from_a_judge_as_it_ships(base, step, tmp_path):
    taught = trainer(base)
    for _ in range(RECIPE.steps):
        taught.learn(step)
    save_judge({name: weight.detach() for name, weight in taught.model.trained().items()}, tmp_path)

    later = trainer(base)
    later.model.go_on_from(tmp_path)

    for name, weight in taught.model.trained().items():
        assert torch.allclose(later.model.trained()[name], weight, atol=1e-3)  # it ships in half precision
    assert later.learn(step).loss < 0.6 * trainer(base).learn(step).loss


def test_the_card_names_the_judge_that_the_training_went_on_from():
    found = Reached(ballots=3, chosen=0.5, auc=0.5, none=0.5)

    assert "went on from the judge whose weights have the SHA-256 `ab12`" in card_of(Recipe(judge="ab12"), [], found)
    assert "went on from" not in card_of(Recipe(), [], found)


def test_a_training_does_not_go_on_from_a_judge_of_another_rank(base, tmp_path):
    other = JudgeModel.from_base(base, rank=3, half=False, layers=3)
    save_judge({name: weight.detach() for name, weight in other.trained().items()}, tmp_path)

    with pytest.raises(ValueError, match="other weights"):
        trainer(base).model.go_on_from(tmp_path)
