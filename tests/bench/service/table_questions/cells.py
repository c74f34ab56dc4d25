"""The questions, and the judging of a response by the cell that it marks.

The tables were chosen by reading the documents as Footnote extracts them, each for another form of table, and the
questions were written before any was asked. They name the subject, and the period where the table has several.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.service.plain_questions.judging import Outcome, judge
from tests.bench.service.plain_questions.questions import Question

DATA = Path(__file__).with_name("questions.jsonl")

_SIGNS = re.compile(r"[\s$€£()*\\]+")
_UNIT = re.compile(r" (?:thousand|million|billion)$")


@dataclass(frozen=True, slots=True)
class CellQuestion:
    """A question that one cell answers.

    Attributes:
        documents: Paths below the folder of documents; any one of them may answer.
        text: The question.
        row: How the row begins that has the cell, as it is extracted.
        cell: The text of the cell.
        said: Words of its unit and its period, which the line of a lead should have beside it.
    """

    documents: tuple[str, ...]
    text: str
    row: str
    cell: str
    said: tuple[str, ...]

    @property
    def asked(self) -> Question:
        """The same as a plain question, whose pattern is the row up to its cell."""
        return Question(self.documents, self.text, "cell", f"{re.escape(self.row)}.*{re.escape(self.cell)}")


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """How one response was judged.

    Attributes:
        outcome: What came of the question.
        row: Whether the first quote has the right row of the right document.
        cell: Whether it marks the right cell there, and no lead says another.
        lead: Whether the lead is the right cell; None without a lead.
        said: Whether the lead's line has the cell's unit and period; None without a right lead.
        confirmed: Whether a footnote is verified.
    """

    outcome: Outcome
    row: bool
    cell: bool
    lead: bool | None
    said: bool | None
    confirmed: bool


def load(path: Path = DATA) -> tuple[CellQuestion, ...]:
    """All questions."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return tuple(
        CellQuestion(tuple(row["documents"]), row["question"], row["row"], row["cell"], tuple(row["said"]))
        for row in rows
    )


def judged_cell(question: CellQuestion, body: Mapping[str, Any]) -> CellVerdict:
    """The verdict on the body of a response.

    The row is judged by the characters of the document that the first quote's footnote cites, since a table may be
    shown in another form.
    """
    plain = judge(question.asked, body)
    if plain.outcome in {"refused", "failed"}:
        return CellVerdict(plain.outcome, row=False, cell=False, lead=None, said=None, confirmed=False)
    row = _cites_row(question, body)
    marked = [body["answer"][one["start"] : one["end"]] for one in _first_marks(body)]
    words = body.get("lead")
    lead = None
    if words:
        lead = row and _is_cell(question, _UNIT.sub("", body["answer"][words["start"] : words["end"]]))
    cell = row and lead is not False and (bool(lead) or any(_is_cell(question, one) for one in marked))
    line = body["answer"].split("\n", 1)[0].casefold()
    said = all(one.casefold() in line for one in question.said) if lead else None
    return CellVerdict(plain.outcome, row, cell, lead, said, plain.marked)


def _cites_row(question: CellQuestion, body: Mapping[str, Any]) -> bool:
    """Whether the first quote cites the row with its cell."""
    spans = body.get("quoted_spans") or [{"start": 0, "end": len(body["answer"])}]
    behind = [one for one in body["citations"] if one["answer_start"] >= spans[0]["start"]]
    if not behind:
        return False
    first = min(behind, key=lambda one: one["answer_start"])
    names = {Path(document).name for document in question.documents}
    lines = first["cited_text"].split("\n")
    return first["filename"] in names and any(
        line.lstrip("| ").startswith(question.row) and question.cell in line for line in lines
    )


def _first_marks(body: Mapping[str, Any]) -> list[Mapping[str, int]]:
    spans = body.get("quoted_spans")
    return list(spans[0].get("highlights", ())) if spans else []


def _is_cell(question: CellQuestion, marked: str) -> bool:
    """Whether marked words are the cell; of a cell of many words a part will do."""
    one, other = _bare(marked), _bare(question.cell)
    return one == other or (" " in question.cell and len(marked.split()) > 1 and one in other)


def _bare(text: str) -> str:
    return _SIGNS.sub("", text).rstrip(".").casefold()
