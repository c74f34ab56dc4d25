"""app.tuning.verifier.fit fits what it should, on examples that are what they say."""

import json
from pathlib import Path

import numpy as np
import pytest

from app.tuning.verifier.examples import Example, answer_examples, scifact_examples
from app.tuning.verifier.fit import calibrated, cases, fit
from tests.app.answering.verification.fakes import OneDirection


def example(claim: str, *, supported: bool, question: str = "", apart: bool = False) -> Example:
    return Example(
        dataset="made",
        kind="made",
        question=question,
        claim=claim,
        source="The plant in Oslo makes turbines for ships. The board met in spring.",
        heading="Report",
        supported=supported,
        apart=apart,
    )


def test_the_fit_finds_the_weights_that_made_the_labels() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2))
    share = 1 / (1 + np.exp(-(-1 + 2 * rows[:, 0] - 0.5 * rows[:, 1])))
    labels = (rng.random(20_000) < share).astype(float)

    found = fit(rows, labels, np.ones(20_000), ridge=0.01)

    assert found == pytest.approx([-1, 2, -0.5], abs=0.1)


def test_true_claims_get_more_support_than_false_ones_and_forbidden_ones_none() -> None:
    claims = [("The plant makes turbines for ships.", True), ("The board met in spring.", True),
              ("The plant makes bread and butter for everyone.", False), ("Children play football in parks.", False),
              ("The plant has 12 turbines for ships.", False)]  # fmt: skip
    known = cases([example(claim, supported=truth) for claim, truth in claims], embed=OneDirection().embed)

    _, supports = calibrated(known, fragment=False, embedded=True)

    assert min(supports[:2]) > max(supports[2:])
    assert supports[-1] == 0.0


def write_set(folder: Path, *, spans: bool = False) -> Path:
    text = (
        "In May 2020 the board of Acme met in Oslo for two whole days. "
        "The plant of Contoso is in Bergen and makes ships."
    )
    other = "Cats are small animals that were first kept near houses in Egypt. They sleep for most of the day."
    rows: dict[str, list[dict[str, object]]] = {
        "corpus.jsonl": [{"_id": "1", "title": "Acme", "text": text}, {"_id": "2", "title": "Cats", "text": other}],
        "queries.jsonl": [{"_id": "q", "text": "Where did the board meet?", "answers": ["Oslo"]},
                          {"_id": "r", "text": "What does the plant make?", "answers": ["ships"]},
                          {"_id": "s", "text": "Where were cats first kept?", "answers": ["Egypt"]}],
    }  # fmt: skip
    if spans:
        rows["spans.jsonl"] = [{"query_id": "q", "corpus_id": "1", "label": "CONTRADICT", "text": text[:61]}]
    for name, lines in rows.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\nr\t1\t1\ns\t2\t1\n")
    return folder


def test_made_claims_are_true_only_beside_their_own_passage(tmp_path: Path) -> None:
    made = list(answer_examples(write_set(tmp_path), share=0.25, most=10))

    kinds = {one.kind: one for one in made if one.question == "Where did the board meet?"}
    assert {kind for kind, one in kinds.items() if one.supported} == {"answer", "quote", "sentence"}
    assert {kind for kind, one in kinds.items() if not one.supported} >= {"swapped", "wrong", "joined", "number"}
    assert kinds["answer"].claim == "Oslo" in kinds["answer"].source
    assert kinds["wrong"].claim in {"ships"} | {"Acme", "Contoso", "Bergen", "May"}
    assert "Oslo" not in kinds["swapped"].source
    assert kinds["number"].claim not in kinds["number"].source
    assert made == list(answer_examples(tmp_path, share=0.25, most=10)), "the seed decides"


def test_rationales_carry_their_label_and_abstracts_without_one_support_nothing(tmp_path: Path) -> None:
    first, second, *_ = scifact_examples(write_set(tmp_path, spans=True), share=0.25)

    assert (first.kind, first.supported) == ("contradict", False)
    assert first.source.startswith("In May 2020")
    assert (second.kind, second.supported) == ("none", False)
