"""app.tuning.evidence_reader.model and .losses: the losses, against slow ones that go through every span."""

import math
import random

import pytest
import torch

from app.tuning.evidence_reader.groups import IGNORED, Group, Reading, View
from app.tuning.evidence_reader.losses import Weights, losses_of, pair_loss
from app.tuning.evidence_reader.model import EvidenceModel, Scores, span_masses
from retrieval.span_model import MOST_ANSWER_TOKENS, Window
from tests.app.tuning.evidence_reader.by_view import none_loss, right_margin, shared_loss, tag_loss
from tests.app.tuning.evidence_reader.shelves import base_of


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(4)
    return EvidenceModel.from_base(base_of(tmp_path_factory.mktemp("base") / "tiny"), tags=True).eval()


def reading(size: int, *, golds=(), tags=None, asked: int = 3, seed: int = 0) -> Reading:
    random_ = random.Random(seed)
    ids = tuple(random_.randrange(5, 60) for _ in range(asked + size + 1))
    offsets = tuple((at, at + 1) for at in range(size))
    return Reading(Window(ids, asked, offsets), tuple(golds), tuple(tags or [0] * size))


VIEW = View(
    (
        reading(70, golds=((10, 12), (11, 11)), seed=1),
        reading(4, seed=2),
        reading(50, golds=((5, 5),), asked=5, seed=3),
    )
)


def margins(scores: Scores, view: View) -> list[tuple[float, bool]]:
    """Of every span of the view, and whether it is right."""
    found = []
    for row, one in enumerate(view.readings):
        starts, ends = scores.starts[row].tolist(), scores.ends[row].tolist()
        places = range(one.window.first, one.window.first + len(one.window.offsets))
        for start in places:
            for end in places:
                if start <= end < start + MOST_ANSWER_TOKENS:
                    margin = starts[start] + ends[end] - starts[0] - ends[0]
                    found.append((margin, (start, end) in one.golds))
    return found


def test_shared_normalisation_is_one_softmax_over_all_spans_and_one_none(model):
    with torch.no_grad():
        scores = model.score([one.window for one in VIEW.readings])
        masses = span_masses(scores.starts, scores.ends)
        found = float(shared_loss(scores.starts, scores.ends, masses, VIEW))
        silent = float(none_loss(masses))

    every = margins(scores, VIEW)
    total = sum(math.exp(margin) for margin, _ in every) + 1
    assert found == pytest.approx(
        -math.log(sum(math.exp(margin) for margin, right in every if right) / total), rel=1e-4
    )
    assert silent == pytest.approx(-math.log(1 / total), rel=1e-4)
    assert sum(right for _, right in every) == 3


def test_tags_are_cross_entropies_counted_by_the_evidence():
    torch.manual_seed(1)
    readings = [
        reading(30, tags=[1] * 9 + [IGNORED] * 3 + [0] * 18),
        reading(12, tags=[0] * 12, asked=6),
    ]
    scores = torch.randn(2, 40)

    found = float(tag_loss(scores, readings))

    slow = 0.0
    for row, one in enumerate(readings):
        for at, tag in enumerate(one.tags):
            chance = 1 / (1 + math.exp(-float(scores[row, one.window.first + at])))
            slow -= {1: math.log(chance), 0: math.log(1 - chance), IGNORED: 0.0}[tag]
    assert found == pytest.approx(slow / 9, rel=1e-4)


def test_scores_do_not_hang_on_what_else_is_read(model, monkeypatch):
    windows = [one.window for one in VIEW.readings] * 3
    with torch.no_grad():
        together = model.score(windows)
        monkeypatch.setattr("app.tuning.evidence_reader.model.READ_TOKENS", 80)
        apart = model.score(windows)
        starts, ends = model(windows[:3])
    for one, other in zip(together, apart, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(together.starts[:3, : starts.shape[1]], starts, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(together.ends[:3, : ends.shape[1]], ends, rtol=1e-4, atol=1e-4)


def test_each_part_of_the_loss_is_of_its_own_passages(model):
    second = View((reading(20, seed=7),))
    tagged = View((reading(9, tags=[1] * 9, seed=8), reading(9, seed=9)), pointed=False)
    groups = [Group(VIEW, second, paired=True), Group(tagged, None)]
    with torch.no_grad():
        losses = losses_of(model, groups)
        scores = model.score([one.window for one in VIEW.readings])
        masses = span_masses(scores.starts, scores.ends)
        other = model.score([one.window for one in second.readings])
        last = model.score([one.window for one in tagged.readings])
        assert float(losses.pointed) == pytest.approx(
            float(shared_loss(scores.starts, scores.ends, masses, VIEW)), rel=1e-4
        )
        assert float(losses.apart) == pytest.approx(float(none_loss(masses[[1]])), rel=1e-4)
        assert float(losses.unanswered) == pytest.approx(
            float(none_loss(span_masses(other.starts, other.ends))), rel=1e-4
        )
        right = right_margin(scores.starts, scores.ends, VIEW)
        assert float(losses.paired) == pytest.approx(
            float(pair_loss(right, span_masses(other.starts, other.ends)[0])), rel=1e-4
        )
        assert float(losses.tags) == pytest.approx(
            float(
                tag_loss(scores.tags, VIEW.readings)
                + tag_loss(other.tags, second.readings)
                + tag_loss(last.tags, tagged.readings)
            ),
            rel=1e-4,
        )
        weights = Weights(apart=2, unanswered=3, tags=4, paired=5)
        assert float(losses.total(weights)) == pytest.approx(
            sum(float(part) * weight for part, weight in zip(losses, (1, 2, 3, 4, 5), strict=True)), rel=1e-5
        )


def test_gradients_are_finite_and_the_same_as_of_views_one_by_one(model):
    """No group of the second batch is pointed or paired: an empty part must not spoil the gradients of the others."""
    second = View((reading(20, seed=7),))
    tagged = View((reading(9, tags=[1] * 9, seed=8), reading(9, seed=9)), pointed=False)
    for groups in ([Group(VIEW, second, paired=True), Group(VIEW, None)], [Group(tagged, None)]):
        model.zero_grad()
        losses_of(model, groups).total(Weights()).backward()
        found = [weight.grad.clone() for weight in model.head.parameters()]
        model.zero_grad()
        by_views(model, groups, Weights()).backward()
        for one, weight in zip(found, model.head.parameters(), strict=True):
            assert weight.grad is not None
            torch.testing.assert_close(one, weight.grad, rtol=1e-3, atol=1e-4)
    model.zero_grad()


def by_views(model, groups, weights):
    """The weighted loss, each view read and counted by itself."""
    total = torch.zeros(())
    for group in groups:
        right = torch.zeros(())
        for view in group.views:
            scores = model.score([one.window for one in view.readings])
            masses = span_masses(scores.starts, scores.ends)
            total = total + weights.tags * tag_loss(scores.tags, view.readings)
            if view is group.unanswered:
                total = total + weights.unanswered * none_loss(masses)
                if group.paired:
                    total = total + weights.paired * pair_loss(right, masses.logsumexp(dim=0))
            elif view.pointed:
                right = right_margin(scores.starts, scores.ends, view)
                total = total + shared_loss(scores.starts, scores.ends, masses, view)
                silent = [row for row, one in enumerate(view.readings) if not one.golds]
                total = total + (weights.apart * none_loss(masses[silent]) if silent else 0)
    return total


def test_in_half_precision_the_scores_stay_float32_and_near(model):
    windows = [one.window for one in VIEW.readings]
    with torch.no_grad():
        full, half = model.score(windows), model.score(windows, half=True)
    assert half.starts.dtype == torch.float32
    place = slice(VIEW.readings[0].window.first, -1)
    torch.testing.assert_close(full.starts[0, place], half.starts[0, place], rtol=0.1, atol=0.2)
