"""`python -m tests.bench.service.table_questions FOLDER`: twenty questions, each answered by one cell of a real table.

All documents of these questions and of the plain questions are uploaded into one library, and each question is asked of
all of them, by quotes and without a language model unless --generators says otherwise.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.service.plain_questions.asking import Asked, Way, ask_all, upload
from tests.bench.service.plain_questions.figures import Share
from tests.bench.service.plain_questions.questions import documents_of
from tests.bench.service.plain_questions.questions import load as plain_questions
from tests.bench.service.table_questions.cells import CellQuestion, CellVerdict, judged_cell, load
from tests.server import Server

_WIDTH = 300


def measure(folder: Path, ways: Sequence[Way], questions: Sequence[CellQuestion]) -> dict[str, Any]:
    """The figures of each way to answer, and what was asked."""
    asked_as = [question.asked for question in questions]
    documents = documents_of([*asked_as, *plain_questions()])
    found: dict[str, Any] = {"documents": len(documents), "ways": {}, "answers": {}}
    with tempfile.TemporaryDirectory(prefix="footnote-tables-") as made:
        for number, way in enumerate(ways):
            server = Server(Path(made) / "data", **way.settings)
            try:
                server.start()
                if not number:
                    upload(server, folder, documents)
                asked, _ = ask_all(server, asked_as)
                server.stop()
            finally:
                server.close()
            verdicts = [judged_cell(question, one.body) for question, one in zip(questions, asked, strict=True)]
            found["ways"][way.name] = {name: asdict(share) for name, share in shares(verdicts).items()}
            found["answers"][way.name] = [
                _row(question, one, verdict) for question, one, verdict in zip(questions, asked, verdicts, strict=True)
            ]
            print(f"\n## {way.name}\n{wrong(questions, asked, verdicts)}", file=sys.stderr)
    return found


def shares(verdicts: Sequence[CellVerdict]) -> dict[str, Share]:
    """Every share, by its name in the table; what is shown as unsure counts as not right."""
    leads = [one for one in verdicts if one.outcome == "answered" and one.lead is not None]
    confirmed = [one for one in verdicts if one.confirmed and one.outcome == "answered"]
    return {
        "cell right": Share.count([one.outcome == "answered" and one.cell for one in verdicts]),
        "row right": Share.count([one.outcome == "answered" and one.row for one in verdicts]),
        "cell right, also where unsure": Share.count([one.cell for one in verdicts]),
        "row right, also where unsure": Share.count([one.row for one in verdicts]),
        "lead right, of those given": Share.count([bool(one.lead) for one in leads]),
        "unit and period beside the right lead": Share.count([bool(one.said) for one in leads if one.lead]),
        "confirmed and the row wrong": Share.count([not one.row for one in confirmed]),
        "unsure": Share.count([one.outcome == "unsure" for one in verdicts]),
    }


def wrong(questions: Sequence[CellQuestion], asked: Sequence[Asked], verdicts: Sequence[CellVerdict]) -> str:
    """The questions that were not answered right, with what was said, to be judged by eye."""
    lines: list[str] = []
    for question, one, verdict in zip(questions, asked, verdicts, strict=True):
        if verdict.outcome == "answered" and verdict.cell:
            continue
        said = "row right" if verdict.row else "row wrong"
        lines.append(f"\n{question.text}\n  {verdict.outcome}, {said}; expected {question.row} … {question.cell}")
        lines += [f"  {line[:_WIDTH]}" for line in one.body["answer"].split("\n")]
    return "\n".join(lines)


def _row(question: CellQuestion, one: Asked, verdict: CellVerdict) -> Mapping[str, Any]:
    return {
        "question": question.text,
        "seconds": round(one.seconds, 3),
        "answer": one.body["answer"],
        "answers": next((span["answers"] for span in one.body.get("quoted_spans") or ()), None),
        **asdict(verdict),
    }


def main() -> None:
    """Print the shares, and on stderr what is not right; write both as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.service.table_questions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder of documents, with pdf/, docx/ and so on")
    parser.add_argument("--generators", default="extractive", help="e.g. extractive,FOLDER+model_class=writer")
    parser.add_argument("--out", type=Path, help="write the figures and the answers here, as JSON")
    chosen = parser.parse_args()
    if not chosen.folder.is_dir():
        parser.error(f"{chosen.folder} is no folder of documents")
    found = measure(chosen.folder, [Way.of(name) for name in chosen.generators.split(",")], load())
    for name, way in found["ways"].items():
        print(f"{name}, a library of {found['documents']} documents")
        for share, counted in way.items():
            print(f"  {share}: {Share(**counted)}")
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
