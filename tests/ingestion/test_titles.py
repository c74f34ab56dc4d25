"""ingestion.titles: a file's properties are believed only where the document uses their words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.extraction import LocalExtractor
from ingestion.titles import is_title_line, largest_lines, title_of, words_of_name
from tests.ingestion.texts import hostile_text

DOCUMENTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "documents"

PROSE = [("The keeper lights the lamp at dusk, and goes to bed at dawn.", 10.0)] * 20

# Read in the files: the title that a person would give.
REAL = {
    "pdf/apple_10q_2022q3.pdf": "Apple Inc.",
    "pdf/fed_agency_GSA2022.pdf": "GSA Strategic Plan Fiscal Years 2022 – 2026",
    "pdf/google-doc-document.pdf": "PDF Example Document",
    "pdf/layout-parser-paper-fast.pdf": (
        "LayoutParser: A Unified Toolkit for Deep Learning Based Document Image Analysis"
    ),
    "pdf/markitdown_RECEIPT-2024-TXN-98765_retail_purchase.pdf": "TECHMART ELECTRONICS",
    "pdf/markitdown_SPARSE-2024-INV-1234_borderless_table.pdf": "INVENTORY RECONCILIATION REPORT",
    "pdf/multi-column-2p.pdf": "Dense Passage Retrieval for Open-Domain Question Answering",
    "pdf/multi_page.pdf": "The Evolution of the Word Processor",
    "pdf/nih_protocol_NCT06145295.pdf": (
        "Understanding the Effectiveness of an Online Support Group in Enhancing Recovery Identity and Health-Related"
        " Quality of Life of Middle-aged and Older Ovarian Cancer Patients: A Randomized Controlled Trial"
    ),
    "pdf/ntsb_report_20071229X02007.pdf": "National Transportation Safety Board Aviation Accident Final Report",
    "pdf/nvidia_10q_2022q3.pdf": "FORM 10-Q NVIDIA CORPORATION",
    "pdf/redp5110_sampled.pdf": "Row and Column Access Control Support in IBM DB2 for i",
    "docx/markitdown_test.docx": "AutoGen: Enabling Next-Gen LLM Applications via Multi-Agent Conversation",
    "docx/lorem_ipsum.docx": "lorem ipsum",
    "html/wiki_duck.html": "Duck - Wikipedia",
    "xlsx/xlsx_05_table_with_title.xlsx": "Wild Duck Observations",
    "xlsx/2023-half-year-analyses-by-segment.xlsx": "2023 half year analyses by segment",
}


@pytest.mark.parametrize(
    "declared",
    ["(anonymous)", "0001045810-22-000166", "Front cover", "untitled", "GSA2022", "data analysis plan", "",
     "Microsoft Word - Document1", "PowerPoint Presentation"],
)  # fmt: skip
def test_a_name_that_the_document_does_not_use_gives_way_to_what_it_shows(declared: str) -> None:
    text = "Strategic Plan of the GSA\n\nFront cover, page 1 of the document, 2022."

    assert title_of(declared=declared, shown="Strategic Plan", opening=text, text=text) == "Strategic Plan"


@pytest.mark.parametrize(
    ("declared", "title"),
    [
        ("Annual Report of Example Limited", "Annual Report of Example Limited"),
        ("Microsoft Word - annual report.docx", "annual report"),
        ("Geschäftsbericht: ANNUAL  report", "Geschäftsbericht: ANNUAL report"),
    ],
)
def test_declared_words_of_the_document_are_its_title(declared: str, title: str) -> None:
    text = "Example\n\nThis is our annual report."

    assert title_of(declared=declared, shown="Example", opening=text, text=text) == title


def test_words_of_later_pages_count_only_where_nothing_is_shown() -> None:
    names = {"declared": "Analysis plan", "opening": "A cover.", "text": "A cover. On page 9: the analysis plan."}

    assert title_of(shown="Cover", **names) == "Cover"
    assert title_of(shown="", **names) == "Analysis plan"


def test_titles_without_blanks_between_words_are_compared_too() -> None:
    assert title_of(declared="日本語の本", shown="第一章", opening="これは日本語の本です。", text="") == "日本語の本"
    assert title_of(declared="別の書物", shown="第一章", opening="これは日本語の本です。", text="") == "第一章"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("annual_report-2022.pdf", "annual report 2022"),
        ("a folder/Minutes 2024-01-15.v2.docx", "Minutes 2024-01-15 v2"),
        ("C:\\files\\plan__final.PDF", "plan final"),
        ("README", "README"),
        (".env", ".env"),
        ("___.txt", "___.txt"),
        ("日本語.pdf", "日本語"),
    ],
)
def test_a_file_name_gives_its_words(name: str, words: str) -> None:
    assert words_of_name(name) == words


@given(name=hostile_text, shown=hostile_text, declared=hostile_text, text=hostile_text)
def test_a_title_is_one_line_of_a_bounded_length(name: str, shown: str, declared: str, text: str) -> None:
    for title in (words_of_name(name), title_of(declared=declared, shown=shown, opening=text, text=text)):
        assert title == " ".join(title.split())
        assert len(title) <= 300


@given(name=st.text(alphabet="abcXYZ019", min_size=1))
def test_a_name_of_letters_and_figures_is_its_own_words(name: str) -> None:
    assert words_of_name(f"folder.d/{name}.pdf") == name


def test_the_first_line_in_the_largest_type_is_the_title_with_those_that_go_on_with_it() -> None:
    page = [
        ("Example Limited", 12.0),
        ("A Study of Lights", 20.0),
        ("and of their Keepers", 19.5),
        *PROSE,
        ("Lamps", 20.0),
    ]

    assert largest_lines([page, PROSE]) == "A Study of Lights and of their Keepers"


@pytest.mark.parametrize(
    "line", ["2.5", "Oct-16-2023", "ibm.com/redbooks Redpaper", "~70%", "books@example.org", "1st"]
)
def test_figures_dates_and_addresses_are_no_title_however_large(line: str) -> None:
    assert largest_lines([[(line, 60.0), ("A Study of Lights", 20.0), *PROSE]]) == "A Study of Lights"


def test_a_type_that_later_pages_use_is_that_of_headings() -> None:
    page = [("A Study of Lights", 10.0), ("First chapter", 14.0), *PROSE]

    assert largest_lines([page, [("Second chapter", 14.0), *PROSE], [("Third chapter", 14.0), *PROSE]]) == ""
    assert largest_lines([page, PROSE, PROSE]) == "First chapter"


def test_prose_alone_has_no_title_and_a_cover_has() -> None:
    cover = [("The Effect of Lamps on", 10.0), ("the Sleep of Keepers", 10.0), ("Oct-16-2023", 10.2)]

    assert largest_lines([PROSE]) == largest_lines([]) == largest_lines([[], []]) == ""
    assert largest_lines([cover, PROSE]) == "The Effect of Lamps on the Sleep of Keepers"
    assert largest_lines([[*cover, ("To whom it may concern:", 10.0)], PROSE]) == ""


@pytest.mark.parametrize(
    ("line", "can"),
    [
        ("A Study of Lights", True),
        ("A Study of Lights.", False),
        ("Dear Sir or Madam,", False),
        ("Draft", False),
        ("12 May 2024, 11:45", False),
        ("a\nb c d e", False),
    ],
)
def test_a_paragraph_that_is_a_sentence_a_date_or_a_word_is_no_title(line: str, can: bool) -> None:
    assert is_title_line(line) is can


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the shared documents do not lie beside this checkout")
def test_real_documents_have_the_titles_that_people_would_give_them() -> None:
    extractor = LocalExtractor()

    found = {file: extractor.extract(DOCUMENTS / file, filename=Path(file).name).title for file in REAL}

    assert found == REAL
