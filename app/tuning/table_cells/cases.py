"""Asks questions that one cell of a table answers, and records the cells of its row and what the selection marks.

The questions of the training sets are about tables that were held back from the span reader's training. Those of
tatqa-dev, which the reader has not seen, are in two halves by the block of their table: one trains, one measures.
Every question is asked of its block or document and of others of its set, as questions about reports do not say which
report they mean.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from app.answering.quoting.asked_cells import values
from app.answering.quoting.candidates import Candidate
from app.answering.quoting.features import Read
from app.answering.quoting.passage_reader import PassageReader
from app.answering.quoting.pointing import cell_margins, row_of
from app.answering.quoting.selection import leads, selection_of
from app.answering.states.reading import ANSWERED
from app.evaluation.dataset import read_question_set
from app.evaluation.scratch import PRINCIPAL, Ingested, ingest, scratch_application
from app.evaluation.types import QuestionSet, SetQuestion
from app.models.loading import load_reader
from app.server.state import State
from app.settings import Settings
from app.tuning.answer_score.cases import COMPANY, TOP_K, USES, context_of, gold_of, hits_of, part_of
from app.tuning.evidence_reader.mixture import documents_of, folder_of
from retrieval.types import Span

MEASURED = "tatqa-dev"
"""The set whose held half is measured."""
TRAINING = ("tatqa-test-gold", "ait-qa", "wtq-lookups")
"""The sets of which only what was held back from the span reader is used."""

_SIGNS = re.compile(r"[\s$%€£,]")
_CELL = re.compile(r"[^|\n]*[^|\n\s]")

Part = Literal["training", "tune", "held"]
Gold = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCase:
    """One question that one cell of a table answers.

    Attributes:
        dataset: The set's name.
        question_id: The question's id in the set.
        part: "held" is measured, the others train.
        values: For each cell of the right row the values of `asked_cells.values`; empty where its row was not read.
        right: The place of the right cell among them.
        row: Whether the first quote's row is the right one.
        cell: Whether the first quote marks the right cell.
        leads: Whether what it marks leads the answer.
    """

    dataset: str
    question_id: str
    part: Part
    values: tuple[Mapping[str, float], ...]
    right: int
    row: bool
    cell: bool
    leads: bool


def table_cases(sets: Path, settings: Settings, data_dir: Path) -> Iterator[TableCase]:
    """The cases of the sets in the folder `sets`, asked of an application over `data_dir`.

    Raises:
        QuestionSetMalformed: A set is missing or wrong.
        SetupError: The data dir holds something else.
    """
    reader = load_reader(settings)
    with scratch_application(settings, data_dir=data_dir) as state:
        assert state.serving.models is not None, "a scratch application has models"
        passage_reader = PassageReader(embedder=state.serving.models.embedder, reader=reader)
        for name in (MEASURED, *TRAINING):
            folder = folder_of(sets, name)
            whole = read_question_set(folder)
            blocks = _blocks(folder) if name == MEASURED else documents_of(folder, whole)
            question_set = whole if name == MEASURED else part_of(whole, USES[name], document_of=blocks)
            ingested = ingest(state, question_set, on_progress=lambda _done, _total: None)
            shuffled = random.Random(name)  # noqa: S311 - a sample
            for question in question_set.questions.values():
                found = _case(state, passage_reader, question_set, question, ingested, blocks, shuffled)
                if found is not None:
                    yield found


def written(case: TableCase) -> str:
    """The case as one line of JSON."""
    return json.dumps(asdict(case))


def read_table_cases(file: Path) -> list[TableCase]:
    """The cases that `written` wrote, one a line."""
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [TableCase(**{**row, "values": tuple(row["values"])}) for row in rows]


def half_of(block: str) -> Part:
    """The half that the questions about a block of tatqa-dev are in."""
    return "tune" if hashlib.sha256(block.encode()).digest()[0] % 2 else "held"


def _blocks(folder: Path) -> dict[str, str]:
    """The block of each passage: a table with the paragraphs around it."""
    lines = map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["_id"]: line["metadata"]["block"] for line in lines}


def _case(
    state: State,
    passage_reader: PassageReader,
    question_set: QuestionSet,
    question: SetQuestion,
    ingested: Ingested,
    blocks: Mapping[str, str],
    shuffled: random.Random,
) -> TableCase | None:
    """One question, asked; None where not exactly one cell answers, and where nothing was found."""
    measured = question_set.name == MEASURED
    relevant = {one for one in question_set.relevant(question.id) if one in ingested.document_ids}
    gold: Gold = (
        _cells_that_answer(state, question, relevant, ingested)
        if measured
        else gold_of(state, question_set, question, ingested)
    )
    if sum(map(len, gold.values())) != 1:
        return None
    meant = {blocks[one] for one in relevant}
    own = {one for one in ingested.document_ids if blocks[one] in meant} if measured else relevant
    others = sorted(ingested.document_ids.keys() - own)
    beside = shuffled.sample(others, min(COMPANY, len(others)))
    scope = tuple(ingested.document_ids[one] for one in [*sorted(own), *beside])
    context = context_of(state, question, hits_of(state, question, ingested, scope=scope)[:TOP_K])
    assert state.serving.models is not None, "the scratch application has models"
    vector = partial(state.serving.models.embedder.embed_query, question.text)
    found = passage_reader.scored(question.text, context, question_vector=vector)
    selection = selection_of(question.text, found, answered=ANSWERED, nearest=0)
    if not selection.quotes or not found.reads:
        return None
    first = selection.quotes[0]
    document = first.source.hit.chunk.document_id
    cells, right = _right_row(question.text, found.candidates, found.reads, gold)
    return TableCase(
        dataset=question_set.name,
        question_id=question.id,
        part=half_of(next(iter(meant))) if measured else "training",
        values=cells,
        right=right,
        row=_meets(first.span, document, gold),
        cell=first.highlight is not None and _meets(first.highlight, document, gold),
        leads=leads(question.text, selection),
    )


def _cells_that_answer(
    state: State, question: SetQuestion, relevant: set[str], ingested: Ingested
) -> dict[str, list[tuple[int, int]]]:
    """The cells with the one answer of a question of tatqa-dev, whose spans are not told; none for other questions."""
    said = question.metadata
    if said["answer_type"] != "span" or "table" not in said["answer_from"] or len(question.answers) != 1:
        return {}
    answer, found = _bare(question.answers[0]), dict[str, list[tuple[int, int]]]()
    for one in relevant:
        ours = ingested.document_ids[one]
        text = state.corpus.contents.text(ours, tenant_id=PRINCIPAL.tenant_id)
        for match in _CELL.finditer(text) if "|" in text else ():
            if answer and _bare(match.group()) == answer:
                start = match.start() + len(match.group()) - len(match.group().lstrip())
                found.setdefault(ours, []).append((start, match.end()))
    return found


def _right_row(
    question: str, candidates: Sequence[Candidate], reads: Sequence[Read], gold: Gold
) -> tuple[tuple[Mapping[str, float], ...], int]:
    """The values of the cells of the row that answers, and the place of the right one; none where it was not read."""
    for candidate, read in zip(candidates, reads, strict=True):
        document = candidate.source.hit.chunk.document_id
        if not _meets(candidate.core, document, gold) or (found := row_of(candidate)) is None:
            continue
        row, start = found
        places = [
            place
            for place, cell in enumerate(row.cells)
            if _meets(Span(start + cell.span.start_char, start + cell.span.end_char), document, gold)
        ]
        if len(places) == 1 and not row.labelled:
            return tuple(values(question, row, cell_margins(row, start, read))), places[0]
    return (), 0


def _meets(span: Span, document: str, gold: Gold) -> bool:
    return any(start < span.end_char and span.start_char < end for start, end in gold.get(document, ()))


def _bare(cell: str) -> str:
    return _SIGNS.sub("", cell).casefold()
