"""retrieval.entailment reads labels by name, and a single score as entailment."""

import json
from pathlib import Path

import pytest

from retrieval.entailment import EntailmentModel
from retrieval.errors import VerifierUnavailable
from tests.retrieval.cross_encoder_folder import build_bert

CLAIM = "revenue rose"
PASSAGES = ["acme revenue rose in spring", "cats", "the dogs of winter fell"]


pytestmark = pytest.mark.usefixtures("one_thread")


def labelled(folder: Path, labels: dict[int, str]) -> Path:
    model = build_bert(folder, labels=len(labels))
    config = json.loads((model / "config.json").read_text())
    config["id2label"] = {str(at): label for at, label in labels.items()}
    config["label2id"] = {label: at for at, label in labels.items()}
    (model / "config.json").write_text(json.dumps(config))
    return model


def test_entailment_and_contradiction_are_found_by_their_labels(tmp_path: Path) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    folder = labelled(tmp_path, {0: "CONTRADICTION", 1: "entailment", 2: "neutral"})
    reference = CrossEncoder(str(folder), device="cpu").predict(
        [(passage, CLAIM) for passage in PASSAGES], activation_fn=torch.nn.Softmax(dim=-1)
    )

    judged = EntailmentModel.load(str(folder), device="cpu", dtype="float32").judge(CLAIM, PASSAGES)

    assert [one.entailment for one in judged] == pytest.approx(reference[:, 1].tolist(), abs=1e-6)
    assert [one.contradiction for one in judged] == pytest.approx(reference[:, 0].tolist(), abs=1e-6)
    assert len({one.entailment for one in judged}) == len(PASSAGES), "else any order would pass"


def test_a_rerankers_score_is_its_entailment(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = build_bert(tmp_path)
    reference = CrossEncoder(str(folder), device="cpu").predict([(CLAIM, passage) for passage in PASSAGES])

    model = EntailmentModel.load(str(folder), device="cpu", dtype="float32")
    judged = model.judge(CLAIM, PASSAGES)

    assert [one.entailment for one in judged] == pytest.approx(reference.tolist(), abs=1e-6)
    assert {one.contradiction for one in judged} == {0.0}
    assert model.judge(CLAIM, []) == []


def test_tokens_are_those_of_every_pair(tmp_path: Path) -> None:
    model = EntailmentModel.load(str(build_bert(tmp_path)), device="cpu", dtype="float32")

    # [CLS] revenue rose [SEP] cats [SEP], and the longer one cut at twelve
    assert model.count_tokens(CLAIM, ["cats"]) == 6
    assert model.count_tokens(CLAIM, ["cats", "cats"]) == 12
    assert model.count_tokens(CLAIM, []) == 0


def test_a_model_that_does_not_name_entailment_is_refused(tmp_path: Path) -> None:
    folder = labelled(tmp_path, {0: "LABEL_0", 1: "LABEL_1"})

    with pytest.raises(VerifierUnavailable, match="does not say which one is entailment"):
        EntailmentModel.load(str(folder), device="cpu", dtype="float32")


def test_an_embedder_cannot_verify(tmp_path: Path) -> None:
    folder = build_bert(tmp_path, labels=None)

    with pytest.raises(VerifierUnavailable, match="no head that judges pairs"):
        EntailmentModel.load(str(folder), device="cpu", dtype="float32")


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(VerifierUnavailable, match=r"nobody/nothing.*FOOTNOTE_VERIFIER"):
        EntailmentModel.load("nobody/nothing", device="cpu")
