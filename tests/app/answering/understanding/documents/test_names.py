"""Which documents a question names, whatever stands between the words of a name."""

import pytest

from app.answering.understanding.documents.asking import named, wanted_overview
from app.answering.understanding.documents.names import closest, names
from app.db.catalogue import Named


def called(*documents: str) -> list[Named]:
    """Documents by file, or by file and title: "a.pdf|The title"."""
    parts = [document.partition("|") for document in documents]
    return [Named(f"doc_{at}", 1, file, title or None) for at, (file, _, title) in enumerate(parts)]


def meant(asked: str, *documents: str) -> list[str]:
    wanted = wanted_overview(asked)
    assert wanted is not None
    return [found.filename for found in closest(wanted, called(*documents))]


@pytest.mark.parametrize(
    "asked",
    [
        "Summarise the 10-Q",
        "Summarise the 10_q",
        "Summarise the 10Q",
        "Summarise the 10-Qs",
        "What is the 10 Q about?",
        "Summarise Apple's 10-Q.",
        "Summarise Apple’s 10-Q.",
        "Summarise apple_10q",
        "Summarise Apple10Q",
        "tl;dr of Apple-10-Q.pdf",
    ],
)
@pytest.mark.parametrize(
    "document",
    [
        "apple_10q.pdf",
        "Apple 10-Q.pdf",
        "APPLE-10Q.PDF",
        "apple_10_q.pdf",
        "apple10q.pdf",
        "0000320193.pdf|Apple: 10–Q",
    ],
)
def test_marks_spaces_and_case_do_not_count(asked: str, document: str) -> None:
    assert meant(asked, "memo.txt", document, "apple_10k.pdf") == [document.partition("|")[0]]


@pytest.mark.parametrize(
    ("asked", "document"),
    [
        ("Summarise the annual_report", "AnnualReport.docx"),
        ("Summarise the COVID-19 guide", "covid19-guide.pdf"),
        ("Summarise the covid19 guide", "a.pdf|COVID-19: a guide"),
        ("What is GSA2022 about?", "fed_agency_GSA-2022.pdf"),
        ("What is the well-being report about?", "report on wellbeing.pdf"),
    ],
)
def test_so_it_is_with_other_words(asked: str, document: str) -> None:
    assert meant(asked, "memo.txt", document) == [document.partition("|")[0]]


@pytest.mark.parametrize("document", ["Q3 forecast 10.pdf", "apple_10k.pdf", "apple_q10.pdf", "110q.pdf", "10.pdf"])
def test_a_letter_says_nothing_without_its_neighbour(document: str) -> None:
    assert meant("Summarise the 10-Q", document) == []


def test_of_names_with_the_same_words_the_one_with_no_others_is_meant() -> None:
    both = ("apple_10q_amended.pdf", "apple_10q.pdf")

    assert meant("Summarise apple-10q.pdf", *both) == ["apple_10q.pdf"]
    assert meant("Summarise the 10-Q", *both) == list(both)


def test_a_document_does_not_take_the_place_of_another_by_a_shorter_name() -> None:
    both = ("GSA strategic plan 2022.pdf", "strategic plan.txt")

    assert meant("Summarise the strategic plan", *both) == list(both)
    assert meant("Summarise strategic_plan.txt", *both) == ["strategic plan.txt"]


def test_the_reply_to_the_question_back_is_a_whole_name() -> None:
    wanted = named("strategic plan")
    assert wanted is not None

    found = closest(wanted, called("GSA strategic plan 2022.pdf", "strategic plan.txt"))
    assert [one.filename for one in found] == ["strategic plan.txt"]


def test_a_name_alone_is_understood() -> None:
    wanted = named("The Apple 10-Q, please.")
    assert wanted is not None
    fits = [names(wanted, one) for one in called("apple_10q.pdf", "apple_10k.pdf", "a.pdf|10-Q of Apple")]

    assert fits == [True, False, True]
    assert named("the") is None
