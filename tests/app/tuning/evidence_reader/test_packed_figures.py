"""app.tuning.evidence_reader.packed_figures: the best spans, and the shares counted from them."""

import pytest
import torch

from app.tuning.evidence_reader.groups import Group, Reading, View
from app.tuning.evidence_reader.model import EvidenceModel
from app.tuning.evidence_reader.packed_figures import best_spans, figures_of
from retrieval.span_model import MOST_ANSWER_TOKENS, Window, best_span
from tests.app.tuning.evidence_reader.shelves import base_of


def test_the_best_spans_are_those_of_answering():
    torch.manual_seed(3)
    starts, ends = torch.randn(7, 90), torch.randn(7, 90)
    starts[0, 5], ends[0, 5 + MOST_ANSWER_TOKENS] = 90.0, 90.0  # one token too long together
    starts[1, 80], ends[1, 20] = 90.0, 90.0  # the wrong way round
    margins, firsts, lasts = best_spans(starts, ends)
    for row in range(7):
        start, end, margin = best_span(starts[row], ends[row])
        assert (int(firsts[row]), int(lasts[row])) == (start, end)
        assert float(margins[row]) == pytest.approx(margin, abs=1e-4)


def view(*ids: int, golds: tuple[tuple[int, int], ...] = ()) -> View:
    """Two tokens of question, then a passage of `ids`."""
    window = Window((2, 20, 21, 3, *ids, 3), 4, ((0, 0),) * len(ids))
    return View((Reading(window, golds, (0,) * len(ids)),))


def test_shares_are_counted_over_answerable_questions(tmp_path):
    model = EvidenceModel.from_base(base_of(tmp_path / "tiny"), tags=True).eval()
    every = (view(10, 11, 12), view(13, 14), view(15, 16, 17, 18))
    with torch.no_grad():
        spans = [best_spans(*model.score([one.readings[0].window])[:2]) for one in every]
    margins = [float(one[0]) for one in spans]
    low, middle, high = sorted(range(3), key=lambda at: margins[at])
    start, end = (int(spans[high][at]) for at in (1, 2))
    ids = every[high].readings[0].window.ids[4:-1]

    exact = figures_of(model, [Group(view(*ids, golds=((start, end),)), every[low]), Group(every[middle], None)])
    assert (exact.answerable, exact.unanswerable) == (1, 2)
    assert (exact.exact, exact.f1, exact.right, exact.auc, exact.refused) == (1, 1, 1, 1, 1)

    other = every[low].readings[0].window.ids[4:-1]
    beaten = figures_of(model, [Group(view(*other, golds=((4, 4),)), every[high]), Group(every[middle], None)])
    assert (beaten.auc, beaten.refused) == (0, 0)
    with pytest.raises(ValueError, match="no question is answerable"):
        figures_of(model, [Group(every[low], None)])
