"""`python -m tests.bench.service.conflicts SET...`: planted pairs that are found, ordinary questions with a conflict.

Each SET is a folder of a question set with spans (BEIR layout). A sample of its documents is one collection, together
with the planted documents; ordinary questions do not see these. A pair is found where the answer's conflict has a
footnote in the document and one in the planted document. Intervals are Wilson's (1927) of 95 %.
"""

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path

from app.answering.quoting.passage_reader import PassageReader
from app.answering.states.reading import Selection
from app.evaluation.dataset import read_question_set
from app.evaluation.scratch import Ingested, ingest, scratch_application
from app.evaluation.types import QuestionSet, SetQuestion
from app.models.loading import load_judge, load_reader
from app.server.state import State
from app.settings import load_settings
from app.tuning.answer_score.cases import TOP_K, context_of, hits_of
from tests.bench.service.conflicts.planting import Planted, planted_in

_SEEDS = 30, 31  # of the planted pairs, and of the ordinary questions


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks questions of one collection, with the planted documents or without."""

    state: State
    passage_reader: PassageReader
    ingested: Ingested
    planted_ids: frozenset[str]

    def selection(self, question: SetQuestion, *, planted: bool) -> Selection:
        """What is quoted for a question."""
        hits = hits_of(self.state, question, self.ingested, scope=None)
        if not planted:
            hits = [hit for hit in hits if hit.chunk.document_id not in self.planted_ids]
        assert self.state.serving.models is not None, "a scratch application has models"
        return self.passage_reader.select(
            question.text,
            context_of(self.state, question, hits[:TOP_K]),
            question_vector=partial(self.state.serving.models.embedder.embed_query, question.text),
        )

    def outcome(self, one: Planted) -> str:
        """`found`, `other` for a conflict of other documents, or how the question ended without one."""
        selection = self.selection(one.question, planted=True)
        if selection.conflict is None:
            return selection.outcome
        ours = {self.ingested.document_ids.get(name) for name in (one.source, one.document.id)}
        return "found" if _documents(selection) == ours else "other"


def _documents(selection: Selection) -> set[str | None]:
    assert selection.conflict is not None, "asked of one alone"
    places = selection.conflict.first, selection.conflict.other
    return {selection.quotes[place].source.hit.chunk.document_id for place in places}


def measure(folder: Path, *, pairs: int, questions: int, documents: int) -> Iterator[str]:
    """The rows of a Markdown table for a set, and the ordinary questions with a conflict."""
    whole = read_question_set(folder)
    planted = planted_in(whole, most=pairs, seed=_SEEDS[0])
    taken = {one.question.id for one in planted}
    others = [one for one in whole.questions.values() if one.id not in taken and whole.relevant(one.id)]
    ordinary = random.Random(_SEEDS[1]).sample(others, min(questions, len(others)))
    settings = load_settings(generator="extractive")
    with (
        tempfile.TemporaryDirectory(prefix="footnote-conflicts-") as made,
        scratch_application(settings, data_dir=Path(made) / "data") as state,
    ):
        ingested = ingest(state, _part(whole, planted, ordinary, documents), on_progress=lambda _done, _total: None)
        assert state.serving.models is not None, "a scratch application has models"
        reader = PassageReader(
            embedder=state.serving.models.embedder, reader=load_reader(settings), judge=load_judge(settings)
        )
        ids = frozenset(ingested.document_ids[one.document.id] for one in planted)
        asking = Asking(state, reader, ingested, ids)
        ended = Counter((one.what, asking.outcome(one)) for one in planted)
        alarms = [one for one in ordinary if asking.selection(one, planted=False).conflict is not None]
    for what in ("number", "date", "name", None):
        of_kind = Counter({end: ended[kind, end] for kind, end in ended if kind == what})
        if what is None:
            of_kind = sum((Counter({end: count}) for (_, end), count in ended.items()), Counter())
        total = of_kind.total()
        yield f"| {folder.name} | {what or 'all'} | {total} | {_share(of_kind['found'], total)} | {dict(of_kind)} |"
    yield f"| {folder.name} | ordinary | {len(ordinary)} | {_share(len(alarms), len(ordinary))} | |"
    yield from (f"  {one.text}" for one in alarms)


def _part(whole: QuestionSet, planted: list[Planted], ordinary: list[SetQuestion], documents: int) -> QuestionSet:
    needed = {one.source for one in planted} | {name for one in ordinary for name in whole.relevant(one.id)}
    others = [name for name in whole.documents if name not in needed][: max(0, documents - len(needed))]
    kept = {name: document for name, document in whole.documents.items() if name in needed or name in set(others)}
    return replace(whole, documents=kept | {one.document.id: one.document for one in planted})


def _share(part: int, total: int) -> str:
    if not total:
        return "-"
    share, z = part / total, 1.96
    middle, width = share + z * z / (2 * total), z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    low, high = ((middle + sign * width) / (1 + z * z / total) for sign in (-1, 1))
    return f"{share:.2f} ({max(0.0, low):.2f} to {high:.2f})"


def main() -> None:
    """Measure each set."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.conflicts", description=__doc__)
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET")
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--documents", type=int, default=450)
    chosen = parser.parse_args()
    for folder in chosen.sets:
        for row in measure(folder, pairs=chosen.pairs, questions=chosen.questions, documents=chosen.documents):
            print(row, flush=True)


if __name__ == "__main__":
    main()
