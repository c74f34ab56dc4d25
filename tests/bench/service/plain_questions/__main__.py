"""`python -m tests.bench.service.plain_questions FOLDER`: what somebody new asks of a library, and what they get.

All documents that the questions are about are uploaded into one library, and each question is asked of all of them,
side by side with each configuration named by --generators on one data dir. The half set aside is for measuring alone:
its questions and answers are neither printed nor written unless --reveal says so.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.service.plain_questions.asking import Asked, Way, ask_all, upload
from tests.bench.service.plain_questions.figures import Judged, figures, table
from tests.bench.service.plain_questions.judging import judge, shown_by
from tests.bench.service.plain_questions.questions import KINDS, Question, documents_of, load, select
from tests.server import Server

_KEPT = ("answered", "reason", "answer", "lead", "answers", "quoted_spans")
_KEPT_OF_CITATIONS = ("answer_start", "answer_end", "filename", "verified", "support", "cited_text", "page_start")
_WIDTH = 400


def measure(folder: Path, ways: Sequence[Way], questions: Sequence[Question], *, limited: bool) -> dict[str, Any]:
    """The figures of each way, and every answer; with `limited` the library holds only what the questions name."""
    documents = documents_of(questions if limited else load())
    found: dict[str, Any] = {"documents": len(documents), "ways": {}, "answers": {}}
    with tempfile.TemporaryDirectory(prefix="footnote-plain-") as made:
        uploaded = False
        for way in ways:
            print(f"{way.name}: {len(questions)} questions", file=sys.stderr, flush=True)
            server = Server(Path(made) / "data", **way.settings)
            try:
                server.start()
                if not uploaded:
                    upload(server, folder, documents)
                    uploaded = True
                asked, processor_seconds = ask_all(server, questions)
                server.stop()
            finally:
                server.close()
            found["ways"][way.name] = figures(judged(asked), processor_seconds=processor_seconds)
            found["answers"][way.name] = asked
    return found


def judged(asked: Sequence[Asked]) -> list[Judged]:
    """The verdicts on what was asked."""
    return [Judged(one.question, judge(one.question, one.body), one.seconds) for one in asked]


def again(path: Path) -> dict[str, Any]:
    """The figures from the answers that an earlier run wrote, judged by the patterns of today."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    known = {question.text: question for question in load()}
    for name, rows in found["answers"].items():
        asked = [Asked(known[row["question"]], row["body"], row["seconds"]) for row in rows if row["question"] in known]
        if not asked:
            raise SystemExit(f"{path} holds no answers: it was written without --reveal")
        before = found["ways"][name]
        spent = before["processor_seconds_a_question"] * len(asked)
        found["ways"][name] = figures(judged(asked), processor_seconds=spent)
        found["answers"][name] = asked
    return found


def wrong(asked: Sequence[Asked]) -> str:
    """The answers to be judged by eye: those not right first, and those to unanswerable questions."""
    lines: list[str] = []
    for one in asked:
        verdict = judge(one.question, one.body)
        if verdict.first if verdict.outcome == "answered" else not one.question.answerable:
            continue
        mark = "marked" if verdict.marked else "not marked"
        lines.append(f"\n{one.question.kind}: {one.question.text}\n  {verdict.outcome}, {one.body['reason']}, {mark}")
        lines.append(f"  expected {one.question.pattern} in {', '.join(one.question.documents)}")
        shown = shown_by(one.body)
        for label, passage in [("lead", shown.lead), *(("quote", passage) for passage in shown.passages[:3])]:
            if passage is not None:
                text = " ".join(passage.text.split())
                lines.append(f"  {label} {sorted(passage.files)}: {text[:_WIDTH]}")
    return "\n".join(lines)


def main() -> None:
    """Print the tables, and write the figures as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.service.plain_questions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder of documents, with pdf/, docx/ and so on")
    parser.add_argument("--half", choices=("building", "aside", "all"), default="building")
    parser.add_argument("--generators", default="default", help="e.g. default,extractive,default+unconfirmed=keep")
    parser.add_argument(
        "--limit", type=int, help="so many questions, evenly spaced, of a library as small as they need"
    )
    parser.add_argument("--kinds", help="only questions of these kinds, e.g. cell,number; of a library as with --limit")
    parser.add_argument("--out", type=Path, help="write the figures and the answers here, as JSON")
    parser.add_argument("--rejudge", type=Path, metavar="OUT", help="ask nothing: judge the answers of an earlier run")
    parser.add_argument("--wrong", action="store_true", help="print the answers that are not right, to judge by eye")
    parser.add_argument("--reveal", action="store_true", help="print and write the answers of the half set aside too")
    chosen = parser.parse_args()
    if chosen.rejudge is not None:
        found = again(chosen.rejudge)
    else:
        kinds = KINDS if chosen.kinds is None else chosen.kinds.split(",")
        questions = select(load(), half=chosen.half, kinds=kinds, limit=chosen.limit)
        ways = [Way.of(name) for name in chosen.generators.split(",")]
        found = measure(chosen.folder, ways, questions, limited=chosen.limit is not None or chosen.kinds is not None)
        found["half"] = chosen.half
    answers: Mapping[str, list[Asked]] = {
        name: [one for one in asked if chosen.reveal or one.question.half == "building"]
        for name, asked in found.pop("answers").items()
    }
    print(f"{found['documents']} documents, half: {found['half']}\n\n{table(found['ways'])}")
    if chosen.wrong:
        for name, asked in answers.items():
            print(f"\n## {name}\n{wrong(asked)}")
    if chosen.out is not None:
        rows = {name: [_row(one) for one in asked] for name, asked in answers.items()}
        text = json.dumps({**found, "answers": rows}, indent=1, ensure_ascii=False)
        chosen.out.write_text(text, encoding="utf-8")


def _row(one: Asked) -> dict[str, Any]:
    body = {name: one.body[name] for name in _KEPT if name in one.body}
    body["citations"] = [{name: citation[name] for name in _KEPT_OF_CITATIONS} for citation in one.body["citations"]]
    return {"question": one.question.text, "seconds": round(one.seconds, 3), "body": body}


if __name__ == "__main__":
    main()
