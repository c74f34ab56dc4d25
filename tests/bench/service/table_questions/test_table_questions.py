"""The judging of cells on small responses, and the twenty questions beside the documents that they are about."""

from pathlib import Path
from typing import Any

import pytest

from ingestion.child_extractor import ChildExtractor
from tests.bench.service.plain_questions.questions import load as plain_questions
from tests.bench.service.table_questions.__main__ import shares
from tests.bench.service.table_questions.cells import CellQuestion, judged_cell, load

DOCUMENTS = Path(__file__).resolve().parents[5] / "shared" / "data" / "documents"

_ROW = "Gross profit | 3,177 | 4,631"
_ASKED = CellQuestion(
    ("pdf/report.pdf",), "What was gross profit in 2022?", "Gross profit", "3,177", ("million", "2022")
)


def _body(
    marked: str, *, row: str = _ROW, lead: str = "", line: str = "", filename: str = "report.pdf", **fields: Any
) -> dict[str, Any]:
    """A response that quotes `row` with `marked` words, below a line that begins with the lead."""
    above = f"**{lead}** [1]{line}\n\n> " if lead else "> "
    answer = f"{above}{row} [1]"
    start = len(above)
    at = start + row.index(marked)
    quote = {"start": start, "end": start + len(row), "highlights": [{"start": at, "end": at + len(marked)}]}
    cites = {"filename": filename, "cited_text": row, "verified": True}
    citations = [{**cites, "answer_start": start + len(row) + 1, "answer_end": len(answer)}]
    if lead:
        behind = len(f"**{lead}** ")
        citations.insert(0, {**cites, "answer_start": behind, "answer_end": behind + len("[1]")})
    body = {"answered": True, "reason": None, "answer": answer, "citations": citations, "quoted_spans": [quote]}
    return {**body, **({"lead": {"start": 2, "end": 2 + len(lead)}} if lead else {}), **fields}


def test_the_marked_cell_of_the_right_row_is_right() -> None:
    verdict = judged_cell(_ASKED, _body("3,177"))
    assert (verdict.row, verdict.cell, verdict.lead) == (True, True, None)
    beside = judged_cell(_ASKED, _body("4,631"))
    assert (beside.row, beside.cell) == (True, False)
    assert not judged_cell(_ASKED, _body(_ROW)).cell, "the whole row is no cell"


def test_the_same_number_elsewhere_is_not_right() -> None:
    other = judged_cell(_ASKED, _body("3,177", row="Revenue | 3,177 | 4,631"))
    assert (other.row, other.cell) == (False, False)
    assert not judged_cell(_ASKED, _body("3,177", filename="other.pdf")).row


def test_a_lead_is_the_cell_with_its_unit_and_its_line_says_the_period() -> None:
    right = judged_cell(_ASKED, _body("3,177", lead="3,177 million", line=", October 30, 2022"))
    assert (right.cell, right.lead, right.said) == (True, True, True)
    bare = judged_cell(_ASKED, _body("3,177", lead="3,177"))
    assert (bare.cell, bare.lead, bare.said) == (True, True, False)
    wrong = judged_cell(_ASKED, _body("3,177", lead="4,631 million"))
    assert (wrong.cell, wrong.lead, wrong.said) == (False, False, None), "what leads is what is read"


def test_signs_around_an_amount_do_not_matter_and_other_digits_do() -> None:
    loss = CellQuestion(("pdf/report.pdf",), "What did claims cost?", "Claims", "(534)", ())
    assert judged_cell(loss, _body("534", row="Claims | (534) | (636)")).cell
    assert not judged_cell(loss, _body("34", row="Claims | (534) | (34)")).cell


def test_a_part_of_a_cell_of_words_is_enough() -> None:
    words = CellQuestion(("pdf/report.pdf",), "What is to be done?", "Annexes", "Rename all of them to Annex A.", ())
    row = "Annexes | Rename all of them to Annex A. | Late"
    assert judged_cell(words, _body("Rename all of them", row=row)).cell
    assert not judged_cell(words, _body("Late", row=row)).cell


def test_shares_tell_what_is_answered_from_what_is_shown_as_unsure() -> None:
    verdicts = [
        judged_cell(_ASKED, _body("3,177", lead="3,177 million", line=", 2022")),
        judged_cell(_ASKED, _body("4,631")),
        judged_cell(_ASKED, _body("3,177", answered=False, reason="unsure")),
        judged_cell(_ASKED, _body("3,177", answered=False, reason="no_evidence")),
        judged_cell(_ASKED, _body("3,177", row="Revenue | 3,177 | 4,631")),
    ]
    found = {name: (share.hits, share.of) for name, share in shares(verdicts).items()}
    assert found["cell right"] == (1, 5)
    assert found["row right"] == (2, 5)
    assert found["cell right, also where unsure"] == (2, 5)
    assert found["lead right, of those given"] == found["unit and period beside the right lead"] == (1, 1)
    assert found["confirmed and the row wrong"] == (1, 3)
    assert found["unsure"] == (1, 5)


def test_the_questions_are_twenty_other_ones_than_the_plain_ones() -> None:
    questions = load()
    assert len(questions) == len({one.text for one in questions}) == 20
    assert {one.documents[0].partition("/")[0] for one in questions} == {"pdf", "xlsx", "docx", "html"}
    assert not {one.text for one in questions} & {one.text for one in plain_questions()}


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason=f"{DOCUMENTS} is not there")
def test_each_row_with_its_cell_is_in_the_document_as_it_is_extracted() -> None:
    questions = load()
    with ChildExtractor() as extractor:
        texts = {
            name: extractor.extract(DOCUMENTS / name, filename=Path(name).name).text
            for name in sorted({name for question in questions for name in question.documents})
        }
    missing = [
        (question.text, name)
        for question in questions
        for name in question.documents
        if not any(_holds(line, question) for line in texts[name].split("\n"))
    ]
    assert missing == []


def _holds(line: str, question: CellQuestion) -> bool:
    return line.lstrip("| ").startswith(question.row) and question.cell in line
