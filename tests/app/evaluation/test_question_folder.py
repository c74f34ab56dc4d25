"""app.evaluation.question_folder: documents as they are, questions from a spreadsheet, errors by line."""

from pathlib import Path

import pytest

from app.evaluation.dataset import read_questions
from app.evaluation.types import QuestionSetMalformed
from tests.app.evaluation.small_set import write_set

CSV = """question,expected words,document
When does the lease end?,31 March 2027 | March 2027,lease.txt
"Who pays, if the roof leaks?",the landlord,deep/roof.txt
What is the deposit in bitcoin?,,
"""


def folder_with(folder: Path, questions: str | bytes, **documents: str) -> Path:
    folder.mkdir()
    (folder / "questions.csv").write_bytes(questions if isinstance(questions, bytes) else questions.encode())
    for name, text in (documents or {"lease": "It ends on 31 March 2027."}).items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = folder_with(tmp_path / "papers", CSV)
    (folder / "deep").mkdir()
    (folder / "deep" / "roof.txt").write_text("The landlord pays.")
    (folder / ".DS_Store").write_text("x")
    return folder


def test_questions_expected_words_and_documents_are_read(folder: Path) -> None:
    found = read_questions(folder)

    assert (found.name, sorted(found.documents)) == ("papers", ["deep/roof.txt", "lease.txt"])
    assert found.documents["lease.txt"].path == folder / "lease.txt"
    first, second, third = found.questions.values()
    assert (first.text, first.answers) == ("When does the lease end?", ("31 March 2027", "March 2027"))
    assert (second.text, set(found.relevant(second.id))) == ("Who pays, if the roof leaks?", {"deep/roof.txt"})
    assert (first.unanswerable, second.unanswerable, third.unanswerable) == (False, False, True)


def test_a_document_may_be_named_without_its_folder_where_one_has_the_name(folder: Path) -> None:
    (folder / "questions.csv").write_text("question,answer,document\nWho pays?,landlord,roof.txt\n")

    found = read_questions(folder)

    assert [set(found.relevant(question)) for question in found.questions] == [{"deep/roof.txt"}]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_spreadsheets_separate_in_several_ways_and_write_a_mark_at_the_start(tmp_path: Path, mark: str) -> None:
    rows = "\r\n".join(mark.join(row) for row in (("Question", "Expected", "Document"), ("Wann?", "Mai", "lease.txt")))
    folder = folder_with(tmp_path / "a", ("\ufeff" + rows).encode())

    assert [question.answers for question in read_questions(folder).questions.values()] == [("Mai",)]


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ("a,b\n1,2\n", r"a/questions.csv: the first line is 'question,expected words,document'"),
        ("question,expected,document\n\n", "there is no question in it"),
        ("question,expected,document\nWhen?,x,other.txt\n", r"line 2: the folder has no document 'other.txt'"),
        ("question,expected,document\n,x,lease.txt\n", r"line 2: the question is empty"),
        (b"question,expected,document\n\xff,,\n", "not UTF-8"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, questions: str | bytes, message: str) -> None:
    with pytest.raises(QuestionSetMalformed, match=message):
        read_questions(folder_with(tmp_path / "a", questions))


def test_questions_without_documents_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "questions.csv").write_text(CSV)

    with pytest.raises(QuestionSetMalformed, match=r"put the documents .* beside questions.csv"):
        read_questions(folder)


def test_other_documents_have_another_fingerprint(tmp_path: Path) -> None:
    one, same, other = (
        read_questions(folder_with(tmp_path / name, "question,expected,document\nWhen?,x,lease.txt\n", lease=text))
        for name, text in (("a", "May"), ("b", "May"), ("c", "June"))
    )

    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_a_set_in_the_beir_layout_is_read_as_one(tmp_path: Path) -> None:
    assert len(read_questions(write_set(tmp_path / "small")).documents) == 10
