"""app.evaluation.run measures the whole application on a small, hand-made set."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import SetupError
from app.evaluation.dataset import read_question_set, read_questions
from app.evaluation.record import Run
from app.evaluation.run import evaluate
from app.evaluation.scratch import ingest
from app.evaluation.types import Options
from app.server.state import State
from retrieval.types import SearchMode
from tests.app.evaluation.application import application
from tests.app.evaluation.small_set import corpus, write_set

OPTIONS = Options(
    modes=(SearchMode.HYBRID, SearchMode.LEXICAL), budgets=(100, 50, 5), answers=True, answer_questions=100, seed=5
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, list[tuple[str, int, int]], State]]:
    """One run over the small set, the progress it reported, and the application it asked."""
    folder = tmp_path_factory.mktemp("run")
    progress: list[tuple[str, int, int]] = []
    with application(folder / "data") as state:
        question_set = read_question_set(write_set(folder / "small"))
        run = evaluate(state, [question_set], OPTIONS, on_progress=lambda *step: progress.append(step))
        yield run, progress, state


def test_every_answerable_question_is_ranked_and_finds_its_document(measured) -> None:
    (small,) = measured[0].sets

    for mode in ("hybrid", "lexical"):
        assert small.summary[f"retrieval/{mode}/recall@10"].value == 1
        assert small.summary[f"retrieval/{mode}/ndcg@10"].n == 8
        assert small.summary[f"retrieval/{mode}/span"].value == 1
    assert small.summary["retrieval/hybrid/latency/p50"].value > 0


def test_a_smaller_budget_costs_less_and_never_more_than_it_may(measured) -> None:
    values = measured[0].sets[0].values

    for question, tokens in values["context/100/tokens"].items():
        assert tokens >= values["context/50/tokens"][question] >= values["context/5/tokens"][question]
        assert values["context/50/tokens"][question] <= tokens
    assert measured[0].sets[0].summary["context/5/spans"].value < measured[0].sets[0].summary["context/100/spans"].value


def test_titles_became_headings_and_spans_were_found_behind_them(measured) -> None:
    run, _, state = measured
    documents, _ = state.corpus.documents.list(tenant_id="default", limit=50)
    texts = {
        document.external_id: state.corpus.contents.text(document.id, tenant_id="default") for document in documents
    }
    titles = {
        document.external_id: state.corpus.contents.title(document.id, tenant_id="default") for document in documents
    }

    assert texts["lighthouse"].startswith("# Lighthouse\n\nThe lighthouse keeper")
    assert titles["lighthouse"] == "Lighthouse"
    assert texts["harbour"].startswith("The harbour master")
    assert not any("gold spans are not in" in note for note in run.sets[0].notes)


def test_answers_are_scored_on_answerable_and_unanswerable_questions(measured) -> None:
    summary, values = measured[0].sets[0].summary, measured[0].sets[0].values

    assert values["answers/exact_match"]["q-ships"] == 0
    assert values["answers/contains"] == {question: float(question == "q-ships") for question in values["answers/f1"]}
    assert summary["answers/refusal"].n == 2
    assert summary["answers/false_refusal"].n == 8
    assert values["answers/citation_recall"]["q-ships"] == 1
    refused = {**values["answers/refusal"], **values["answers/false_refusal"]}
    generated = values["answers/completion_tokens"]
    assert refused == {
        question: float(tokens == 0) for question, tokens in generated.items()
    }  # it says no "I don't know"
    assert 0 < sum(refused.values()) < 10


def test_scores_come_by_language_because_the_questions_have_one(measured) -> None:
    run = measured[0]

    assert run.by == "lang"
    assert {value: summary["retrieval/hybrid/ndcg@10"].n for value, summary in run.sets[0].groups.items()} == {
        "de": 4,
        "en": 4,
    }


def test_progress_ends_where_it_said_it_would(measured) -> None:
    progress = measured[1]
    last = {what: (done, total) for what, done, total in progress}

    assert last == {"small: ingesting": (10, 10), "small: searching": (8, 8), "small: answering": (10, 10)}
    assert all(0 <= done <= total for _, done, total in progress)


def test_the_worst_answers_come_with_what_was_wanted_and_said(measured) -> None:
    examples = [example for example in measured[0].sets[0].examples if example.kind == "answer"]

    assert examples
    assert all(example.answer and example.answers and example.gold for example in examples)
    assert [example.score for example in examples] == sorted(example.score for example in examples)


def test_the_same_seed_asks_the_same_questions_and_a_smaller_sample_is_part_of_it(measured) -> None:
    _, _, state = measured
    question_set = read_question_set(write_set(state.settings.data_dir.parent / "small"))

    def asked(limit: int) -> set[str]:
        options = Options(questions=limit, seed=5, budgets=(50,))
        run = evaluate(state, [question_set], options, on_progress=lambda *_: None)
        assert not any(key.startswith("answers/") for key in run.sets[0].values)
        return set(run.sets[0].values["retrieval/hybrid/ndcg@10"])

    assert asked(3) == asked(3)
    assert asked(3) < asked(5)


def test_a_corpus_ingested_before_is_used_again_and_a_changed_one_replaces_it(tmp_path: Path) -> None:
    rows = [*corpus(), {"_id": "empty", "title": " ", "text": ""}, {"_id": "bad", "text": "%PDF-1.7 but no"}]
    with application(tmp_path / "data") as state:
        first = ingest(state, read_question_set(write_set(tmp_path / "s", corpus_rows=rows)), on_progress=_ignored)
        again = ingest(state, read_question_set(write_set(tmp_path / "s", corpus_rows=rows)), on_progress=_ignored)
        rows[0] = {**rows[0], "text": rows[0]["text"] + " It lifted."}
        other = ingest(state, read_question_set(write_set(tmp_path / "s", corpus_rows=rows[:10])), on_progress=_ignored)

        assert first.document_ids == again.document_ids
        assert first.unread.keys() == {"empty", "bad"}
        assert other.collection_id != first.collection_id
        assert len(other.document_ids) == 10
        assert [found.documents for found in state.corpus.collections.list("default")] == [10]


def test_two_sets_of_one_name_and_unknown_metadata_are_refused(tmp_path: Path) -> None:
    question_set = read_question_set(write_set(tmp_path / "s"))
    with application(tmp_path / "data") as state:
        with pytest.raises(SetupError, match="the same name"):
            evaluate(state, [question_set, question_set], Options(), on_progress=lambda *_: None)
        with pytest.raises(SetupError, match="No question has 'colour'"):
            evaluate(state, [question_set], Options(by="colour"), on_progress=lambda *_: None)


def _ignored(done: int, total: int) -> None:
    """Nobody watches."""


def test_a_folder_of_files_is_ingested_as_it_is_and_its_questions_are_answered(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "harbour.txt").write_text("The harbour master logged forty ships in May.\n")
    (folder / "prices.csv").write_text("good,price\nrope,12\n")
    (folder / "questions.csv").write_text(
        "question,expected words,document\n"
        "How many ships did the harbour master log?,forty,harbour.txt\nWhat is rum?,,\n"
    )

    with application(tmp_path / "data") as state:
        run = evaluate(state, [read_questions(folder)], OPTIONS, on_progress=lambda *_: None)
        documents, _ = state.corpus.documents.list(tenant_id="default", limit=50)

    assert sorted((document.filename, document.external_id) for document in documents) == [
        ("harbour.txt", "harbour.txt"),
        ("prices.csv", "prices.csv"),
    ]
    (papers,) = run.sets
    assert papers.summary["retrieval/hybrid/recall@10"].value == 1
    assert papers.summary["answers/contains"].n == 1
    assert papers.summary["answers/refusal"].n == 1
