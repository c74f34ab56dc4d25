"""app.evaluation.dataset: a good set is read whole, a bad one is refused by file and line."""

from pathlib import Path
from typing import Any

import pytest

from app.evaluation.dataset import read_question_set, sample
from app.evaluation.types import QuestionSetMalformed
from tests.app.evaluation.small_set import corpus, qrels, queries, spans, write_set


def test_a_set_is_read_whole(tmp_path: Path) -> None:
    found = read_question_set(write_set(tmp_path / "small"))

    assert (found.name, len(found.documents), len(found.questions)) == ("small", 10, 10)
    assert found.questions["q-ships"].answers == ("forty",)
    assert found.questions["q-moon"].unanswerable
    assert found.relevant("q-ships") == {"lighthouse"}
    assert found.relevant("q-moon") == frozenset()
    (span,) = found.spans["q-ships"]
    assert found.documents[span.document_id].text[span.start : span.end] == "forty"


def test_judgments_may_lie_where_beir_puts_them_and_spans_may_be_missing(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "small", span_rows=[])
    (folder / "qrels").mkdir()
    (folder / "qrels.tsv").rename(folder / "qrels" / "test.tsv")

    found = read_question_set(folder)

    assert found.relevant("q-dough") == {"bakery"}
    assert found.spans == {}


def test_a_grade_of_zero_is_a_judgment_and_not_relevant(tmp_path: Path) -> None:
    found = read_question_set(write_set(tmp_path / "s", qrels_lines=[*qrels(), "q-ships\tbakery\t0"]))

    assert found.judgments["q-ships"] == {"lighthouse": 1, "bakery": 0}
    assert found.relevant("q-ships") == {"lighthouse"}


def test_a_span_without_offsets_is_a_label_and_left_out(tmp_path: Path) -> None:
    labels = [{"query_id": "q-ships", "corpus_id": "bakery", "label": "REFUTES"}]

    assert read_question_set(write_set(tmp_path / "s", span_rows=labels)).spans == {}


def test_another_corpus_has_another_fingerprint(tmp_path: Path) -> None:
    first = read_question_set(write_set(tmp_path / "a"))
    same = read_question_set(write_set(tmp_path / "b", query_rows=queries()[:8]))
    other = read_question_set(write_set(tmp_path / "c", corpus_rows=[*corpus(), {"_id": "x", "text": "More."}]))

    assert first.fingerprint == same.fingerprint != other.fingerprint


SPAN = spans()[0]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"corpus_rows": [*corpus(), corpus()[0]]}, r"s/corpus\.jsonl, line 11: the _id was used before"),
        ({"corpus_rows": [{"_id": 7, "text": "x"}]}, r"s/corpus\.jsonl, line 1: _id is a string"),
        ({"corpus_rows": [{"_id": " ", "text": "x"}]}, r"line 1: _id is empty"),
        ({"corpus_rows": [{"_id": "a\0b", "text": "x"}]}, r"line 1: the _id holds a NUL"),
        ({"corpus_rows": [{"_id": "a", "text": "\ud800"}]}, r"line 1: the text holds half a surrogate pair"),
        ({"query_rows": [{"_id": "q", "text": ""}]}, r"s/queries\.jsonl, line 1: text is empty"),
        ({"query_rows": [{"_id": "q", "text": "x", "answers": "y"}]}, r"line 1: answers is a list of strings"),
        ({"query_rows": [{"_id": "q", "text": "x", "unanswerable": "no"}]}, r"line 1: unanswerable is true or false"),
        ({"query_rows": [{"_id": "q", "text": "x", "metadata": []}, {"_id": "q", "text": "x"}]}, r"line 2: the _id"),
        ({"query_rows": [{"_id": "q", "text": "x", "metadata": [1]}]}, r"line 1: metadata is an object"),
        ({"query_rows": []}, r"s: a question set has at least one document and one question"),
        ({"qrels_lines": ["q-ships lighthouse 1"]}, r"s/qrels\.tsv, line 1: three columns"),
        ({"qrels_lines": [*qrels(), "q-ships\tnowhere\t1"]}, r"s/qrels\.tsv, line 10: no document has this id"),
        ({"qrels_lines": ["nobody\tbakery\t1"]}, r"line 1: no query has this id"),
        ({"qrels_lines": ["q-ships\tbakery\tyes"]}, r"line 1: the score is an integer"),
        ({"span_rows": [SPAN, SPAN | {"corpus_id": "x"}]}, r"s/spans\.jsonl, line 2: no document has this id"),
        ({"span_rows": [SPAN | {"end": 10_000}]}, r"line 1: start and end are offsets"),
        ({"span_rows": [SPAN | {"start": True}]}, r"line 1: start and end are offsets"),
        ({"span_rows": [SPAN | {"text": "fifty"}]}, r"line 1: text is not what stands at start and end"),
    ],
)
def test_a_malformed_set_is_refused_by_file_and_line(tmp_path: Path, parts: dict[str, Any], complaint: str) -> None:
    folder = write_set(tmp_path / "s", **parts)

    with pytest.raises(QuestionSetMalformed, match=complaint) as refusal:
        read_question_set(folder)

    assert str(tmp_path) not in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [(b"{", "line 11: the line is not JSON"), (b"[]", "line 11: the line is not a JSON object"),
     (b"[" * 100_000, "line 11: the line is not JSON"), (b'{"_id": "\xff"}', "line 11: the bytes are not UTF-8")],
)  # fmt: skip
def test_a_line_that_is_no_object_is_refused_by_its_number(tmp_path: Path, line: bytes, complaint: str) -> None:
    folder = write_set(tmp_path / "s")
    with (folder / "corpus.jsonl").open("ab") as file:
        file.write(line + b"\n")

    with pytest.raises(QuestionSetMalformed, match=complaint):
        read_question_set(folder)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = write_set(tmp_path / "s")
    (folder / missing).unlink()

    with pytest.raises(QuestionSetMalformed, match=f"s/{missing}: the file cannot be opened"):
        read_question_set(folder)


def test_a_larger_sample_holds_the_smaller_one_and_a_seed_gives_the_same_again(tmp_path: Path) -> None:
    found = read_question_set(write_set(tmp_path / "s"))

    def ids(limit: int, seed: int) -> list[str]:
        wanted = sample(found, limit=limit, seed=seed, wanted=lambda question: not question.unanswerable)
        return [question.id for question in wanted]

    assert ids(3, 1) == ids(3, 1) == ids(8, 1)[:3]
    assert len(ids(100, 1)) == 8
    assert ids(8, 1) != ids(8, 2)
    assert set(ids(8, 1)) == set(ids(8, 2))


def test_a_question_keeps_its_place_when_others_leave(tmp_path: Path) -> None:
    every = read_question_set(write_set(tmp_path / "a"))
    fewer = read_question_set(
        write_set(tmp_path / "b", query_rows=queries()[1:], qrels_lines=qrels()[2:], span_rows=spans()[1:])
    )

    order = [question.id for question in sample(every, limit=10, seed=0, wanted=lambda _: True)]
    order.remove("q-ships")

    assert [question.id for question in sample(fewer, limit=10, seed=0, wanted=lambda _: True)] == order
