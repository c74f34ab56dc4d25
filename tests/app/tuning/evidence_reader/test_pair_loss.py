"""app.tuning.evidence_reader.losses.pair_loss puts an answerable question above an unanswerable one of its passage."""

import math

import pytest
import torch

from app.tuning.evidence_reader.groups import Group, Reading, View
from app.tuning.evidence_reader.losses import Weights, losses_of, pair_loss
from app.tuning.evidence_reader.model import EvidenceModel, span_masses
from retrieval.span_model import Window
from tests.app.tuning.evidence_reader.by_view import right_margin
from tests.app.tuning.evidence_reader.shelves import base_of

ALONE = Weights(apart=0, unanswered=0, tags=0, paired=1)


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(4)
    return EvidenceModel.from_base(base_of(tmp_path / "tiny"), tags=True)


def view(question, *golds) -> View:
    """Two tokens of question, then always the same passage of six."""
    window = Window((2, *question, 3, 10, 11, 12, 13, 14, 15, 3), 4, tuple((at, at + 1) for at in range(6)))
    return View((Reading(window, golds, tuple(int(at == 0) for at in range(6))),))


ASKED, UNANSWERED = view((20, 21), (6, 7)), view((20, 22))


def margins(model) -> tuple[float, float]:
    """Of the right span, and of all spans of the other question."""
    with torch.no_grad():
        right, other = (model.score([one.readings[0].window]) for one in (ASKED, UNANSWERED))
        return float(right_margin(right.starts, right.ends, ASKED)), float(span_masses(other.starts, other.ends)[0])


def test_it_is_a_logistic_loss_of_the_difference():
    for right, other in ((2.0, -1.0), (-1.0, 2.0), (0.5, 0.5)):
        found = float(pair_loss(torch.tensor(right), torch.tensor(other)))
        assert found == pytest.approx(-math.log(1 / (1 + math.exp(other - right))), rel=1e-5)


def test_its_gradient_raises_the_right_margin_and_lowers_the_other():
    starts, ends = torch.zeros(2, 11, requires_grad=True), torch.zeros(2, 11, requires_grad=True)
    pair_loss(right_margin(starts[:1], ends[:1], ASKED), span_masses(starts[1:], ends[1:])[0]).backward()

    for scores, gold in ((starts, 6), (ends, 7)):
        assert scores.grad is not None
        answerable, unanswerable = scores.grad
        assert answerable[gold] < 0 < answerable[0]  # descending, the right place rises and "no answer" falls
        assert unanswerable[0] < 0 < unanswerable[1:].sum()
        assert torch.equal(answerable.nonzero().flatten(), torch.tensor([0, gold]))


def test_steps_by_it_put_the_answerable_question_above(model):
    group = Group(ASKED, UNANSWERED, paired=True)
    before = margins(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(10):
        optimizer.zero_grad()
        losses_of(model, [group]).paired.backward()
        optimizer.step()
    after = margins(model)

    assert after[0] - after[1] > before[0] - before[1] + 0.5


def test_only_pairs_have_it(model):
    pair, no_pair, alone = Group(ASKED, UNANSWERED, paired=True), Group(ASKED, UNANSWERED), Group(ASKED, None)
    too_long = Group(View(ASKED.readings, pointed=False), UNANSWERED, paired=True)
    with torch.no_grad():
        right, other = margins(model)
        difference = losses_of(model, [pair]).total(ALONE) - losses_of(model, [no_pair]).total(ALONE)
        assert float(difference) == pytest.approx(math.log1p(math.exp(other - right)), rel=1e-3)
        assert [float(losses_of(model, [one]).paired) for one in (no_pair, alone, too_long)] == [0, 0, 0]
