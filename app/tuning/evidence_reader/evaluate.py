"""`python -m app.tuning.evidence_reader.evaluate CHECKPOINT SETS`: measures a reader on unseen documents.

CHECKPOINT is `state.pt` or `trained.safetensors` of a training, even a running one, or the folder of a reader that
ships. Questions on the held-out documents of the training sets, and of sets not trained on, are each asked of the
passage that answers and of the three nearest of its document that do not.
"""

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from app.evaluation.squad import contains_any, exact_match, f1
from app.models.folder import resolve
from app.settings import DEFAULT_EMBEDDER, load_settings
from app.tuning.adapter.examples import perturbed
from app.tuning.evidence_reader.groups import IGNORED, NEAR, Neighbours, Shown, heading, readings_of
from app.tuning.evidence_reader.mixture import RULES, Asked, Company, Source, sources
from app.tuning.evidence_reader.model import EvidenceModel
from app.tuning.span_reader.calibration import area_under_curve
from retrieval.plain_tokenizer import plain_tokenizer
from retrieval.reader_config import READER_FILES
from retrieval.span_model import best_span

UNSEEN_SETS = ("cuad-clauses",)


class Best(NamedTuple):
    """The span chosen in one of several passages, and its margin over no answer."""

    margin: float
    place: int
    text: str


@dataclass(frozen=True, slots=True)
class ReaderResult:
    """The reader's result for a question.

    `apart` is the margin where the right passage is left out, `unanswered` that of a question nothing answers, None
    where there is none. `tags` are numbers of tokens: rightly tagged, tagged, to be tagged.
    """

    exact: float
    f1: float
    contains: float
    right_passage: float
    answered: float
    apart: float | None
    unanswered: float | None
    tags: tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Shares over the questions of a set; None for measures without questions."""

    questions: int
    exact: float
    f1: float
    contains: float
    right_passage: float
    apart_auc: float | None
    unanswered_auc: float | None
    tag_f1: float | None


class Judge:
    """Applies a model to the questions of a source."""

    def __init__(self, model: EvidenceModel, tokenizer: Any, source: Source, *, half: bool = False) -> None:
        """`tokenizer` is a `tokenizers.Tokenizer` without truncation; `half` as in `EvidenceModel.score`."""
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._source = source
        self._half = half
        self._near = Neighbours(source)

    def outcomes(self, *, most: int, console: Console) -> list[ReaderResult]:
        """The outcomes of at most `most` questions of the source, with a progress bar."""
        name = self._source.name
        asked = random.Random(name).sample(self._source.questions, min(most, len(self._source.questions)))  # noqa: S311
        return [self.outcome(one) for one in track(asked, name, console=console, transient=True)]

    def outcome(self, one: Asked) -> ReaderResult:
        """The question asked of its group, of the group without the right passage, and changed."""
        source = self._source
        alone = source.rules.company is Company.FOREIGN
        keys = [] if alone else self._near.near(one, count=NEAR)
        shown = [Shown(source.text(one.passage), one.spans, one.evidence), *(Shown(source.text(key)) for key in keys)]
        texts = [text.below(heading(source, key, 2)) for key, text in zip((one.passage, *keys), shown, strict=True)]
        found, tags = self._read(one.example.question, texts)
        best = max(found)
        second = self._unanswered(one)
        silent = None if second is None else max(self._read(second, texts)[0]).margin
        golds = one.example.golds
        return ReaderResult(
            exact=exact_match(best.text, golds),
            f1=f1(best.text, golds),
            contains=float(contains_any(best.text, golds)),
            right_passage=float(best.place == 0),
            answered=best.margin,
            apart=max((one.margin for one in found if one.place), default=None),
            unanswered=silent,
            tags=tags,
        )

    def _unanswered(self, one: Asked) -> str | None:
        source = self._source
        random_ = random.Random(one.example.question)  # noqa: S311  # nothing secret is drawn
        if written := source.written.get(one.passage, ()):
            return random_.choice(written)
        others = [source.text(key) for key in self._near.siblings(one.passage)[:10]]
        others = others or [source.text(random_.choice(source.keys)) for _ in range(3)]
        changed = perturbed(one.example, source.text(one.passage), random_=random_, others=others)
        return None if changed is None else changed.question

    def _read(self, question: str, texts: Sequence[Shown]) -> tuple[list[Best], tuple[int, int, int]]:
        """The best span of every passage, and the tokens tagged."""
        readings = [
            (place, reading)
            for place, text in enumerate(texts)
            for reading in readings_of(self._tokenizer, question, text)
        ]
        with torch.inference_mode():
            scores = self._model.score([reading.window for _, reading in readings], half=self._half)
        best: dict[int, Best] = {}
        hits = tagged = wanted = 0
        for row, (place, reading) in enumerate(readings):
            window, size = reading.window, len(reading.window.ids)
            start, end, margin = best_span(scores.starts[row, :size], scores.ends[row, :size])
            if place not in best or margin > best[place].margin:
                first, last = window.offsets[start - window.first][0], window.offsets[end - window.first][1]
                best[place] = Best(margin, place, texts[place].text[first:last])
            own = scores.tags[row, window.first : window.first + len(reading.tags)] > 0
            gold = torch.tensor(reading.tags)
            known = gold != IGNORED
            hits += int((own & (gold == 1)).sum())
            tagged += int((own & known).sum())
            wanted += int((gold == 1).sum())
        return list(best.values()), (hits, tagged, wanted)


def figures(outcomes: Sequence[ReaderResult], *, tagged: bool = True) -> Figures:
    """The shares over at least one outcome. `tagged` is whether the reader is trained to tag."""

    def mean(name: str) -> float:
        return float(np.mean([getattr(one, name) for one in outcomes]))

    def auc(name: str) -> float | None:
        other = [value for one in outcomes if (value := getattr(one, name)) is not None]
        answered = np.array([one.answered for one in outcomes], dtype=np.float64)
        return area_under_curve(answered, np.array(other, dtype=np.float64)) if other else None

    hits, marked, wanted = (sum(one.tags[at] for one in outcomes) for at in range(3))
    return Figures(
        questions=len(outcomes),
        exact=mean("exact"),
        f1=mean("f1"),
        contains=mean("contains"),
        right_passage=mean("right_passage"),
        apart_auc=auc("apart"),
        unanswered_auc=auc("unanswered"),
        tag_f1=2 * hits / (marked + wanted) if tagged and marked + wanted else None,
    )


def load_model(checkpoint: Path, base: Path) -> tuple[EvidenceModel, str, bool]:
    """The model of a checkpoint, which one it is, and whether it has learnt to tag.

    Raises:
        ValueError: It holds weights the model has no place for.
        OSError: It cannot be read.
    """
    from safetensors.torch import load_file

    said = checkpoint.name
    if checkpoint.is_dir():
        weights = load_file(checkpoint / READER_FILES[0])
    elif checkpoint.suffix == ".safetensors":
        weights = load_file(checkpoint)
    else:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        weights = state["average"] or state["weights"]
        said = f"step {state['step']} of {state['steps']}, {'average' if state['average'] else 'as it stood'}"
    model = EvidenceModel.from_base(base, tags=True)
    strange = model.load_state_dict({name: one.float() for name, one in weights.items()}, strict=False).unexpected_keys
    if strange:
        raise ValueError(f"{checkpoint.name} has weights of another model: {', '.join(strange[:3])}")
    return model, said, "tag.weight" in weights


def main(arguments: Iterable[str] | None = None) -> None:
    """Ask the questions and print a table; with --json also every figure as a line."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.evidence_reader.evaluate", description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="state.pt, trained.safetensors, or a reader's folder")
    parser.add_argument("data", type=Path, help="folder with the question sets, in it or in `train`")
    parser.add_argument("--questions", type=int, default=300, help="of each set unseen, and of all held back together")
    parser.add_argument("--sets", nargs="+", default=[*UNSEEN_SETS, *RULES])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="append the figures to this file")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    torch.set_num_threads(chosen.threads)
    console = Console(highlight=False)
    base = Path(resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir))
    tokenizer = plain_tokenizer(base)
    model, said, tagged = load_model(chosen.checkpoint, base)
    known = [name for name in chosen.sets if name in RULES]
    found: dict[str, Figures] = {}
    seen: list[ReaderResult] = []
    for name in chosen.sets:
        (source,) = sources(chosen.data, held_back=True, names=[name])
        count = chosen.questions // len(known) if name in RULES else chosen.questions
        outcomes = Judge(model, tokenizer, source).outcomes(most=count, console=console)
        if outcomes:
            found[name] = figures(outcomes, tagged=tagged)
            seen += outcomes if name in RULES and source.rules.pointed else []
    if seen:
        found["held back, together"] = figures(seen, tagged=tagged)
    console.print(_table(found, said))
    if chosen.json is not None:
        row = {"checkpoint": said, **{name: asdict(one) for name, one in found.items()}}
        with chosen.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _table(found: dict[str, Figures], said: str) -> Table:
    names = [one.name for one in fields(Figures) if one.name != "questions"]
    table = Table(title=said)
    for column in ("set", "questions", *(name.replace("_", " ") for name in names)):
        table.add_column(column)
    for name, one in found.items():
        values = (getattr(one, column) for column in names)
        table.add_row(name, str(one.questions), *("" if value is None else f"{value:.3f}" for value in values))
    return table


if __name__ == "__main__":
    main()
