"""app.evaluation.comparison: the common questions of two runs, and what else changed between them."""

from pathlib import Path

import pytest

from app.evaluation.comparison import against_floor, compare
from app.evaluation.record import Run, read_run
from app.evaluation.types import RunMalformed
from tests.app.evaluation.runs import NDCG, run_of, scored, set_run


def test_a_run_compared_with_itself_has_no_difference() -> None:
    run = run_of(
        set_run("a", {**scored(0, 0.5, 1), "retrieval/hybrid/latency": {"q0": 5.0, "q1": 9.0}}), set_run("b", scored(1))
    )

    found = compare(run, run)

    everything = [*found.overall.values(), *(one for changes in found.sets.values() for one in changes.values())]
    assert len(everything) == 3 + 3 + 1
    assert all((one.change, one.low, one.high, one.p) == (0, 0, 0, 1) for one in everything)
    assert found.notes == []


def test_only_common_questions_are_compared_each_with_itself() -> None:
    before = run_of(set_run("a", {NDCG: {"q0": 0.0, "q1": 0.5, "gone": 1.0}}))
    after = run_of(set_run("a", {NDCG: {"new": 0.0, "q1": 0.5, "q0": 1.0}}))

    found = compare(before, after).sets["a"][NDCG]

    assert (found.n, found.before, found.after, found.change) == (2, 0.25, 0.75, 0.5)


def test_the_overall_change_is_of_the_mean_over_common_sets() -> None:
    before = run_of(set_run("a", scored(0, 0)), set_run("b", scored(1)), set_run("only before", scored(0)))
    after = run_of(set_run("a", scored(1, 1)), set_run("b", scored(1)), set_run("only now", scored(0)))

    found = compare(before, after)

    assert found.overall[NDCG].change == 0.5
    assert found.sets.keys() == {"a", "b"}
    assert "only now is not in the earlier run." in found.notes


def test_another_corpus_or_setting_is_said() -> None:
    before = run_of(set_run("a", scored(1), fingerprint="x"), settings={"embedder": "small"})
    after = run_of(set_run("a", scored(1), fingerprint="y"), settings={"embedder": "large"})

    assert compare(before, after).notes == [
        "a: the corpus is not the same in both runs.",
        "embedder: small before, large now.",
    ]


def test_other_ways_of_asking_are_said_unless_the_earlier_run_did_not_know_them() -> None:
    before, after = run_of(set_run("a", scored(1))), run_of(set_run("a", scored(1)))
    three = before.model_copy(update={"options": {"presented": "3", "seed": "0"}})
    every = after.model_copy(update={"options": {"presented": "all", "seed": "1", "strict": "no"}})

    assert compare(three, every).notes == ["presented: 3 before, all now."]
    assert compare(before, every).notes == []


def test_the_model_is_compared_with_the_floor_on_the_questions_both_answered() -> None:
    values = {
        "answers/f1": {"q1": 1.0, "q2": 0.5, "q3": 0.0},
        "answers/latency": {"q1": 9.0},
        "extractive/f1": {"q2": 0.25, "q1": 0.5},
        "presented/near-miss/refusal": {"q1": 1.0},
        "extractive/near-miss/refusal": {"q1": 0.0},
        "retrieval/hybrid/mrr": {"q1": 1.0},
    }

    found = against_floor(values)

    assert found.keys() == {"answers/f1", "presented/near-miss/refusal"}
    assert (found["answers/f1"].n, found["answers/f1"].before, found["answers/f1"].after) == (2, 0.375, 0.75)
    assert found["presented/near-miss/refusal"].change == 1


def test_a_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    run = run_of(set_run("a", scored(0.1, 1 / 3)))
    run = run.model_copy(update={"comparison": compare(run, run)})
    path = tmp_path / "run.json"
    path.write_text(run.model_dump_json())

    assert read_run(path) == run


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 2}', "\0"])
def test_a_file_that_is_no_run_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)

    with pytest.raises(RunMalformed, match=r"run\.json is no run of `footnote eval`") as refusal:
        read_run(path)

    assert str(tmp_path) not in str(refusal.value)


def test_a_run_with_a_field_we_do_not_know_and_one_that_is_missing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(run_of(set_run("a", scored(1))).model_dump_json().replace('"by"', '"bye"'))

    with pytest.raises(RunMalformed, match="by"):
        read_run(path)
    with pytest.raises(RunMalformed, match=r"none\.json: the run to compare with cannot be opened"):
        read_run(tmp_path / "none.json")


def test_values_that_are_no_numbers_cannot_be_in_a_run() -> None:
    with pytest.raises(ValueError, match="finite"):
        Run.model_validate(run_of(set_run("a", scored(1))).model_dump() | {"overall": {
            NDCG: {"n": 1, "value": float("nan"), "low": 0, "high": 0}}})  # fmt: skip
