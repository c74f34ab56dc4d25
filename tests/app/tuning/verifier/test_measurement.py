"""app.tuning.verifier.measurement computes precision, recall and their curves."""

import json
from pathlib import Path

import numpy as np
import pytest

from app.tuning.verifier.measurement import (
    Pair,
    by_shared_words,
    by_verifier,
    chart,
    curve,
    rates,
    read_pairs,
    supports,
)

LABELS = ("SUPPORTS", "SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "SWAPPED")
PAIRS = [Pair(f"c{at}", "The sea rises.", "The sea rises fast.", "Sea", label) for at, label in enumerate(LABELS)]


def test_precision_and_recall_are_shares_of_what_is_verified_and_of_what_is_supported() -> None:
    found = rates(PAIRS, np.array([0.9, 0.1, 0.2, 0.8, 0.3]), threshold=0.6)

    assert found["precision"].value == 0.5
    assert found["settled precision"].value == 1.0
    assert found["recall"].value == 0.5
    assert [found[f"verified {label}"].value for label in LABELS[2:]] == [0.0, 1.0, 0.0]
    assert all(rate.low <= rate.value <= rate.high for rate in found.values())


def test_a_curve_has_a_point_for_every_value_and_ends_with_everything() -> None:
    points = curve(PAIRS, np.array([0.9, 0.2, 0.2, 0.8, 0.1]), settled=False)

    assert points == [(0.5, 1.0), (0.5, 0.5), (1.0, 0.5), (1.0, pytest.approx(0.4))]
    assert chart([("words", points)]).count("<polyline") == 1


def test_swapped_pairs_are_as_many_as_supported_ones_and_of_other_claims(tmp_path: Path) -> None:
    files = {
        "corpus.jsonl": [{"_id": name, "title": "T", "text": f"Sentence {name}."} for name in "abc"],
        "queries.jsonl": [{"_id": name, "text": f"Claim {name}."} for name in "xy"],
        "spans.jsonl": [
            {"query_id": "x", "corpus_id": "a", "label": "SUPPORTS"},
            {"query_id": "y", "corpus_id": "b", "label": "SUPPORTS"},
            {"query_id": "y", "corpus_id": "c", "label": "REFUTES"},
        ],
    }
    for name, rows in files.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    pairs = read_pairs(tmp_path)

    assert [pair.label for pair in pairs] == ["SUPPORTS", "SUPPORTS", "REFUTES", "SWAPPED", "SWAPPED"]
    assert pairs[3].sentence in {"Sentence b.", "Sentence c."}
    assert pairs[4].sentence == "Sentence a."
    assert read_pairs(tmp_path, claims=2)[:3] == pairs[:3]


def test_both_ways_of_verifying_tell_a_quote_from_nonsense() -> None:
    pairs = [Pair("c", "The sea rises fast.", "The sea rises fast.", "Sea", "SUPPORTS"),
             Pair("d", "Cats sleep all day.", "The sea rises fast.", "Sea", "SWAPPED")]  # fmt: skip
    for support in (by_shared_words, by_verifier()):
        quote, nonsense = supports(pairs, support)
        assert quote > 0.6 > nonsense
