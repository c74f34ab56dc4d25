"""retrieval.tuning divides a collection by article, and what measures never trains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.tuning.reranker.collection import Collection, divide, read_collection
from app.tuning.reranker.examples import Example, batches, candidates, mine
from app.tuning.reranker.first_stage import Bm25, FirstStage
from tests.app.tuning.reranker.collection_folder import write_collection
from tests.retrieval.fakes import HashingEmbedder

SHARE = 0.3


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return read_collection(write_collection(tmp_path / "small"))


def test_a_document_is_read_under_its_title_and_a_question_nobody_judged_is_left_out(collection: Collection) -> None:
    assert collection.documents["d7"].startswith("Article 3\nspring rose rare7")
    assert len(collection.questions) == 24


def test_the_digest_is_that_of_the_files(tmp_path: Path, collection: Collection) -> None:
    same = read_collection(write_collection(tmp_path / "again"))
    other = read_collection(write_collection(tmp_path / "other", documents=25))

    assert collection.sha256 == same.sha256 != other.sha256


def test_passages_of_one_article_are_on_the_same_side(collection: Collection) -> None:
    sides = [collection.held_apart(f"d{n}", share=SHARE) for n in range(24)]

    assert sides[0::2] == sides[1::2]
    assert 0 < sum(sides) < 24


def test_a_question_with_a_document_that_measures_does_not_train(collection: Collection) -> None:
    trains, measures = divide(collection, share=SHARE)

    assert len(trains) + len(measures) == 24
    assert all(collection.held_apart(key, share=SHARE) for question in measures for key in question.relevant)
    assert not any(collection.held_apart(key, share=SHARE) for question in trains for key in question.relevant)


@pytest.mark.parametrize("dense", [False, True])
def test_no_document_that_measures_is_trained_on_not_even_as_a_near_miss(collection: Collection, dense: bool) -> None:
    embed = HashingEmbedder().embed_documents if dense else None
    trains, _ = divide(collection, share=SHARE)

    examples = mine(collection, trains, share=SHARE, pool=5, embed=embed)

    apart = {text for key, text in collection.documents.items() if collection.held_apart(key, share=SHARE)}
    assert len(examples) == len(trains)
    for example in examples:
        assert len(example.negatives) >= 4
        assert example.positive not in example.negatives
        assert not apart & {example.positive, *example.negatives}


def test_a_passage_of_the_same_article_that_holds_the_answer_is_no_near_miss(collection: Collection) -> None:
    number = next(n for n in range(0, 24, 2) if not collection.held_apart(f"d{n}", share=SHARE))
    question = replace(collection.questions[number], answers=("fell in the spring",))

    (example,) = mine(collection, [question], share=SHARE, pool=24, embed=None)

    assert collection.documents[f"d{number + 1}"] not in example.negatives
    assert len(example.negatives) > 4, "passages of other articles stay, whatever they hold"


def test_bm25_puts_the_rare_word_before_the_common_ones() -> None:
    scores = Bm25(["the spring", "the rare7 of winter", "the"]).scores("the rare7 spring, spring")

    assert np.argsort(-scores).tolist()[-1] == 2
    assert Bm25(["the"]).scores("unknown").tolist() == [0.0]


def test_the_first_stage_mixes_both_rankings_on_one_scale() -> None:
    vectors = np.eye(3, dtype=np.float32)

    mixed = FirstStage(["alpha", "beta", "gamma"], vectors=vectors).scores("beta", vector=vectors[0])

    assert mixed.tolist() == pytest.approx([0.6, 0.4, 0.0])


def test_candidates_come_from_the_whole_collection_and_know_what_is_missing(collection: Collection) -> None:
    question = replace(collection.questions[3], relevant=frozenset({"d3", "d9"}))

    (found,) = candidates(collection, [question], first=2, embed=None)

    assert found.relevant == (True, False)
    assert found.missing == 1
    assert list(found.scores) == sorted(found.scores, reverse=True)


def test_a_pass_holds_every_example_once_with_its_own_near_misses_and_is_drawn_by_its_seed() -> None:
    examples = [Example(f"q{n}", f"p{n}" * n, tuple(f"n{n}-{m}" for m in range(6))) for n in range(40)]
    examples.append(Example("q too few", "p", ("n",)))

    passed = batches(examples, questions=8, negatives=3, seed=1)

    drawn = [example for batch in passed for example in batch]
    assert sorted(example.query for example in drawn) == sorted(f"q{n}" for n in range(40))
    for example in drawn:
        assert len(set(example.negatives)) == 3
        assert all(negative.startswith(f"n{example.query[1:]}-") for negative in example.negatives)
    assert (
        passed
        == batches(examples, questions=8, negatives=3, seed=1)
        != batches(examples, questions=8, negatives=3, seed=2)
    )
