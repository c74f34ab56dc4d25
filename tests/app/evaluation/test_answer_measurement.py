"""app.evaluation.answer_measurement asks of presented documents, several at a time, and beside a floor."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from app.errors import SetupError
from app.evaluation.dataset import read_question_set
from app.evaluation.floor import said_by
from app.evaluation.record import Run, SetRun
from app.evaluation.report.page import html_report
from app.evaluation.run import evaluate
from app.evaluation.table import tables
from app.evaluation.types import Options, QuestionSet
from app.server.state import State
from retrieval.types import Context, Source, Span
from tests.app.evaluation.application import application
from tests.app.evaluation.runs import run_of
from tests.app.evaluation.small_set import QUESTIONS, UNANSWERABLE, queries, write_set

OPTIONS = Options(answers_only=True, answers=True, presented=3, top_k=4)
GROUPS = ("answerable", "off-topic", "near-miss")
ASKED = 2 * len(QUESTIONS) + len(UNANSWERABLE)


@dataclass(frozen=True)
class Sentence:
    """Implements `Quote`."""

    source: Source
    span: Span
    text: str


class FirstSentence:
    """Implements `Floor`: quotes the first source whole, and says nothing of lavender; counts what it was asked."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []

    def answer(self, question: str, context: Context, /) -> Sequence[Sentence]:
        self.contexts.append(context)
        source = context.sources[0]
        chunk = source.hit.chunk
        if "lavender" in chunk.text:
            return []
        return [Sentence(source, Span(chunk.start_char, chunk.end_char), chunk.text)]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[State, QuestionSet]]:
    """The small set, its first unanswerable question written about the glacier, in an application."""
    folder = tmp_path_factory.mktemp("answers")
    rows = queries()
    rows[len(QUESTIONS)]["metadata"] = {"context_id": "glacier"}
    with application(folder / "data") as state:
        yield state, read_question_set(write_set(folder / "small", query_rows=rows))


@pytest.fixture(scope="module")
def compared(asked: tuple[State, QuestionSet]) -> tuple[SetRun, FirstSentence]:
    """A run beside a floor, and the floor."""
    floor = FirstSentence()
    return measured(asked, OPTIONS, floor), floor


def measured(asked: tuple[State, QuestionSet], options: Options, floor: FirstSentence | None = None) -> SetRun:
    state, question_set = asked
    return evaluate(state, [question_set], options, floor=floor, on_progress=lambda *_: None).sets[0]


def only(asked: tuple[State, QuestionSet], *questions: str) -> tuple[State, QuestionSet]:
    """Nothing but these questions."""
    state, found = asked
    return state, replace(found, questions={name: found.questions[name] for name in questions})


def test_each_group_of_presented_documents_has_its_own_figures_and_nothing_else_is_measured(compared) -> None:
    run, _ = compared

    assert {key.rsplit("/", 1)[0] for key in run.values} == {
        f"{whose}/{group}" for whose in ("presented", "extractive") for group in GROUPS
    }
    assert run.summary["presented/answerable/contains"].n == len(QUESTIONS)
    assert run.summary["presented/off-topic/refusal"].n == len(QUESTIONS)
    assert run.summary["presented/near-miss/refusal"].n == len(UNANSWERABLE)
    assert run.questions == len(QUESTIONS) + len(UNANSWERABLE)


def test_the_gold_document_is_presented_and_the_answer_scored(compared) -> None:
    values = compared[0].values

    assert values["presented/answerable/contains"]["q-ships"] == 1
    assert values["presented/answerable/false_refusal"]["q-ships"] == 0
    assert sum(values["presented/answerable/contains"].values()) == 1, "the model says forty to everything"


def test_the_floor_reads_what_the_model_reads_and_exactly_as_many_documents(compared) -> None:
    run, floor = compared

    assert {len({source.hit.chunk.document_id for source in found.sources}) for found in floor.contexts} == {3}
    assert not any("contexts held fewer" in note for note in run.notes)
    gated = sum(sum(run.values[f"presented/{group}/gate"].values()) for group in GROUPS)
    assert len(floor.contexts) == ASKED - gated > 0


def test_the_model_is_compared_with_the_floor_question_by_question(compared) -> None:
    run, _ = compared

    found = run.against_floor["presented/answerable/f1"]
    assert found.n == len(QUESTIONS)
    assert found.before == pytest.approx(run.summary["extractive/answerable/f1"].value)
    assert found.after == pytest.approx(run.summary["presented/answerable/f1"].value)
    assert found.change == pytest.approx(found.after - found.before)
    assert not any(key.endswith(("/latency", "/gate")) for key in run.values if key.startswith("extractive"))


def test_promises_are_counted_in_whole_numbers(compared) -> None:
    run, _ = compared

    citing = sum(len(run.values.get(f"presented/{group}/slices", {})) for group in GROUPS)
    said = (
        rf"0 dangling citations in {ASKED} answers; (\d+) of \1 cited texts are the canonical text at their offsets\."
    )
    (found,) = filter(None, (re.fullmatch(said, note) for note in run.notes))
    assert int(found[1]) >= citing > 0  # an answer may have several
    assert run.summary["presented/answerable/dangling"].value == 0
    assert run.summary["presented/answerable/slices"].value == 1


def test_the_report_and_the_tables_show_both_side_by_side(compared) -> None:
    run = run_of(compared[0])

    page = html_report(run)
    console = Console(width=200)
    with console.capture() as captured:
        for table in tables(run):
            console.print(table)

    assert "Answers from presented documents" in page
    assert "small: near-miss" in page
    assert "The model less the extractive reader" in page
    assert "Model less extractive reader" in captured.get()
    assert re.search(r"answerable wrongly refused .* n=8", captured.get())


def test_several_at_a_time_give_the_same_values_in_the_same_order(asked, compared) -> None:
    one, _ = compared
    four = measured(asked, replace(OPTIONS, concurrency=4), FirstSentence())

    def timeless(run: SetRun) -> list[tuple[str, list[tuple[str, float]]]]:
        return [(key, list(found.items())) for key, found in run.values.items() if not key.endswith("latency")]

    assert timeless(one) == timeless(four)
    assert any("4 questions were answered at a time" in note for note in four.notes)
    assert not any("at a time" in note for note in one.notes)


def test_the_whole_collection_is_compared_with_the_floor_too(asked) -> None:
    run = measured(asked, replace(OPTIONS, presented=None), FirstSentence())

    assert {key.rsplit("/", 1)[0] for key in run.values} == {"answers", "extractive"}
    assert run.against_floor["answers/contains"].n == len(QUESTIONS)


def test_without_a_floor_nothing_is_compared(asked) -> None:
    run = measured(asked, replace(OPTIONS, answer_questions=2))

    assert run.against_floor == {}
    assert not any(key.startswith("extractive") for key in run.values)


def test_documents_that_are_not_there_are_not_presented_and_said_to_be_missing(asked) -> None:
    run = measured(only(asked, "q-ships", "q-dough"), replace(OPTIONS, presented=11))

    assert any(re.search(r"\d of \d contexts held fewer than 11 documents", note) for note in run.notes)
    assert "2 questions could not be asked of as many off-topic documents; they have no answer scores." in run.notes
    assert not any("off-topic" in key for key in run.values)


def test_a_question_with_more_gold_documents_than_are_presented_is_not_asked(asked) -> None:
    state, found = only(asked, "q-ships", "q-dough")
    found = replace(found, judgments={**found.judgments, "q-ships": {"lighthouse": 1, "harbour": 1}})

    run = measured((state, found), replace(OPTIONS, presented=1))
    assert run.values["presented/answerable/contains"].keys() == {"q-dough"}
    with pytest.raises(SetupError, match="small: no question can be asked of 1 document"):
        measured(only((state, found), "q-ships"), replace(OPTIONS, presented=1))


def test_an_empty_context_is_refused_by_the_floor_without_reading() -> None:
    floor = FirstSentence()

    assert not said_by(floor, "Who?", Context(sources=(), dropped=(), tokens=0)).answered
    assert floor.contexts == []


def test_a_run_of_an_older_footnote_is_read() -> None:
    older: dict[str, object] = {
        "created_at": "t", "versions": {}, "settings": {}, "options": {}, "by": None, "overall": {},
        "sets": [{
            "name": "a", "fingerprint": "f", "documents": 1, "questions": 1, "values": {"answers/f1": {"q": 1.0}},
            "summary": {}, "groups": {}, "examples": [], "notes": [],
        }],
    }  # fmt: skip

    assert Run.model_validate(older).sets[0].against_floor == {}
