"""app.tuning.evidence_reader.mixture: which sets train, how much each counts, and what is held back."""

from collections import Counter

import pytest

from app.tuning.adapter import run
from app.tuning.adapter.examples import Example
from app.tuning.evidence_reader.mixture import (
    NEVER_TRAINED,
    RULES,
    Company,
    Rules,
    Source,
    is_held_back,
    occurrences,
    order,
    shares,
    sources,
)
from tests.app.tuning.evidence_reader.shelves import write_set


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    write_set(folder / "train" / "squad-train-44", rooms=40)
    write_set(folder / "train" / "squad-train-44-unans", rooms=40, written=True)
    write_set(folder / "train" / "cuad-clauses")
    write_set(folder / "train" / "synthetic-forms", written=True, rooms=40)
    write_set(folder / "nq-gold", rooms=40)
    return folder


def with_rules(source: Source, rules: Rules) -> Source:
    return Source(source.question_set, rules, source.questions, source.written, source.document_of, source.keys)


@pytest.mark.parametrize("name", sorted(NEVER_TRAINED))
def test_a_set_that_measures_does_not_train(data, name):
    assert name not in RULES
    with pytest.raises(ValueError, match=name):
        sources(data, names=["squad-train-44", name])


def test_a_set_that_measures_is_read_whole(data):
    (unseen,) = sources(data, held_back=True, names=["cuad-clauses"])

    assert len(unseen.questions) == 60
    assert unseen.rules.weight == 0


def test_documents_train_or_are_held_back(data):
    for name in ("squad-train-44", "nq-gold", "synthetic-forms"):
        (train,), (held,) = (sources(data, held_back=back, names=[name]) for back in (False, True))
        used, kept = ({source.document_of[key] for key in source.keys} for source in (train, held))
        assert used and not used & kept
        assert {one.passage for one in train.questions} <= set(train.keys)
        assert {one.passage for one in held.questions} <= set(held.keys)
        assert set(train.written) <= set(train.keys)
        assert len(train.questions) + len(held.questions) == 60


def test_the_same_articles_are_held_back_as_by_the_first_reader(data):
    (source,) = sources(data, names=["squad-train-44"])
    found = source.question_set
    for key, document in found.documents.items():
        assert is_held_back(found.name, document.title) == run.is_held_back(found, Example("", (), (key,)))


def test_a_pass_asks_each_set_by_weight_and_number_of_questions(data):
    squad, gold = sources(data, names=["squad-train-44", "nq-gold"])
    found = [
        with_rules(squad, Rules(weight=3, company=Company.DOCUMENT)),
        with_rules(gold, Rules(weight=1, company=Company.DOCUMENT)),
    ]

    asked = order(found, passes=4, seed=3)

    sizes = [len(source.questions) for source in found]
    wanted = [weight * size for weight, size in zip((3, 1), sizes, strict=True)]
    counts = Counter(place for place, _ in asked)
    assert len(asked) == pytest.approx(4 * sum(sizes), abs=2)
    assert counts[0] / counts[1] == pytest.approx(wanted[0] / wanted[1], rel=0.02)
    for place in (0, 1):
        times = Counter(question for at, question in asked if at == place)
        assert len(times) == sizes[place]
        assert max(times.values()) - min(times.values()) <= 1
    assert order(found, passes=4, seed=3) == asked
    assert order(found, passes=4, seed=4) != asked


def test_what_is_written_by_rule_is_at_most_a_tenth(data):
    found = sources(data, names=["nq-gold", "synthetic-forms"])

    assert shares(found) == [pytest.approx(0.9), pytest.approx(0.1)]
    assert sum(shares(sources(data, names=["squad-train-44", "nq-gold", "synthetic-forms"]))) == pytest.approx(1)


def test_questions_written_to_be_unanswerable_go_with_their_passage(data):
    (source,) = sources(data, names=["synthetic-forms"])

    assert source.written
    assert all(said == [f"who put thing t{key[1:]} there"] for key, said in source.written.items())


def test_occurrences_match_whole_words_only():
    assert occurrences("10 of 100 is 10", "10") == [(0, 2), (13, 15)]
    assert occurrences("$5 and $55", "$5") == [(0, 2)]
    assert occurrences("any", " ") == []
