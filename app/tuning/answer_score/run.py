"""Fits the answer score: `python -m app.tuning.answer_score.run SETS OUT [--data FOLDER]`.

SETS holds the training sets as folders, in it or in `train`. OUT gets `cases.jsonl`, one question a line, and
`score.md`, the weights and what they reach by cross-validation. Where `cases.jsonl` is there, no question is asked
again. The weights are copied into `app.answering.quoting.score` by hand, and the thresholds are chosen there and in
`selection`.
"""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from app.settings import load_settings
from app.tuning.answer_score.cases import USES, cases, read_cases, written
from app.tuning.answer_score.fit import JUDGE, READER, cross_validated, fitted, fitted_certainty, report


def main() -> None:
    """Ask, fit, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.answer_score.run", description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="the scratch data dir (default: OUT/data); kept for another run")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    file = chosen.out / "cases.jsonl"
    if not file.exists():
        partial = file.with_suffix(".partial")
        settings = load_settings(generator="extractive")
        total = sum(use.questions for use in USES.values())
        with partial.open("w", encoding="utf-8") as lines, Progress() as progress:
            task = progress.add_task("asking", total=total)
            for case in cases(chosen.sets, settings, chosen.data or chosen.out / "data"):
                lines.write(written(case) + "\n")
                progress.advance(task)
        partial.replace(file)
    found = read_cases(file)
    parts: list[str] = []
    for name, without in (
        ("with span reader and judge", frozenset[str]()),
        ("with the span reader", JUDGE),
        ("without them", READER | JUDGE),
    ):
        weights = fitted(found, without=without)
        certain = fitted_certainty(found, weights, without=without)
        shown = json.dumps({"candidate": weights, "certainty": certain}, indent=1)
        parts.append(f"## {name}\n\n```json\n{shown}\n```\n\n{report(cross_validated(found, without=without))}\n")
    text = "\n".join(parts)
    (chosen.out / "score.md").write_text(text, encoding="utf-8")
    Console().print(text, markup=False, highlight=False)


if __name__ == "__main__":
    main()
