"""app.tuning.evidence_reader.publish writes a folder that loads, with a card that says how the reader was made."""

import pytest

from app.models.catalog import ALL_MINILM_L6_V2
from app.models.span_reader import read_reader_manifest
from app.tuning.evidence_reader.evaluate import Figures
from app.tuning.evidence_reader.mixture import source_of
from app.tuning.evidence_reader.publish import NAME, Training, card_of, publish
from app.tuning.evidence_reader.training import Recipe, start
from app.tuning.span_reader.calibration import Calibrated
from app.tuning.span_reader.training import trained_weights
from retrieval.reader_config import Calibration
from retrieval.span_reader import EncoderSpanReader
from retrieval.types import Span
from tests.app.tuning.evidence_reader.shelves import base_of, write_set

CALIBRATED = Calibrated(calibration=Calibration(slope=0.4321, bias=-1.2, threshold=0.3456), measured={})
FIGURES = Figures(
    questions=77,
    exact=0.511,
    f1=0.622,
    contains=0.733,
    right_passage=0.844,
    apart_auc=0.855,
    unanswered_auc=None,
    tag_f1=0.466,
)


def test_what_is_published_loads_and_tags_evidence(tmp_path):
    base = base_of(tmp_path / "base")
    model = start(base, Recipe())
    out = tmp_path / "out"

    publish(model, trained_weights(model), out, calibrated=CALIBRATED, card="# A card\n")

    manifest = read_reader_manifest(out)
    assert manifest is not None
    assert manifest.is_whole(out)
    assert (manifest.name, manifest.base, manifest.calibration) == (NAME, ALL_MINILM_L6_V2.name, CALIBRATED.calibration)
    reader = EncoderSpanReader.load(out, base, calibration=manifest.calibration, device="cpu", dtype="float32")
    ((pointer,),) = reader.mark("what colour", ["the thing is red"], [[Span(0, 16)]])
    assert pointer is not None
    assert pointer.evidence is not None
    assert (out / "README.md").read_text(encoding="utf-8") == "# A card\n"


def test_weights_of_another_model_are_not_published(tmp_path):
    model = start(base_of(tmp_path / "base"), Recipe())

    with pytest.raises(ValueError, match="another model"):
        publish(model, {"other": model.head.weight}, tmp_path / "out", calibrated=CALIBRATED, card="")


def test_the_card_names_the_sets_the_figures_and_the_recipe(tmp_path):
    source = source_of(write_set(tmp_path / "nq-gold"), held_back=False)
    trainings = [
        Training(Recipe(groups=24, pairs=True, seed=5), 678, "span-minilm-l6"),
        Training(Recipe(groups=24, passes=0.2), 12345, ""),
    ]

    card = card_of(trainings, [source], calibrated=CALIBRATED, measured={"cuad-clauses": FIGURES})

    said = (
        "12345 groups",
        "Before them 678 groups",
        "seed 5",
        "RankNet",
        "span-minilm-l6",
        "nq-gold",
        source.question_set.fingerprint,
        "0.4321",
        "-1.2000",
    )
    for one in (*said, "| cuad-clauses | 77 | 0.511 | 0.622 | 0.733 | 0.844 | 0.855 |  | 0.466 |", "Apache-2.0"):
        assert one in card
    assert str(tmp_path) not in card
    packed = card_of([Training(Recipe(), 9, "", packed=True)], [source], calibrated=CALIBRATED, measured={})
    assert "make evidence-reader-gpu PACK=" in packed
    assert "make evidence-reader-gpu" not in card
