"""`python -m app.tuning.candidate_judge.publish TRAINED SETS OUT`: makes the folder of a judge that ships.

TRAINED is the folder of a finished training, SETS the one with the question sets. OUT gets the weights in half
precision, with a manifest and a model card with what they reach on documents held back from training.
"""

import argparse
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import load_file
from torch import Tensor

from app.models.candidate_judge import write_judge_manifest
from app.models.catalog import SMOLLM2_135M_INSTRUCT
from app.models.folder import resolve
from app.settings import DEFAULT_GENERATOR, load_settings
from app.tuning.candidate_judge.ballots import MOST, BallotMaker
from app.tuning.candidate_judge.model import LAYERS
from app.tuning.candidate_judge.run import STATE, TRAINED, Recipe
from app.tuning.evidence_reader.mixture import RULES, Source, order, sources
from app.tuning.evidence_reader.publish import rows
from retrieval.candidate_judge import LanguageModelJudge
from retrieval.judge_layout import JUDGE_FILES
from retrieval.weights import save_halves

NAME = "candidates-smollm2-135m"
_BASE = SMOLLM2_135M_INSTRUCT
_NAMES = ("torch", "transformers", "tokenizers")


@dataclass(frozen=True, slots=True)
class Reached:
    """Figures over ballots about documents that never trained.

    `chosen` is the share of the ballots with a right candidate whose likeliest one is right; `auc` that a right
    candidate scores above a wrong one of any ballot; `none` the share of the others that have no candidate above 0.
    """

    ballots: int
    chosen: float
    auc: float
    none: float


def save_judge(trained: Mapping[str, Tensor], folder: Path) -> None:
    """Writes the trained weights, named as in a model without a head, in half precision, whole or not at all.

    Raises:
        ValueError: A weight overflows half precision.
        OSError: The folder cannot be written.
    """
    save_halves({name.removeprefix("base."): weight for name, weight in trained.items()}, folder / JUDGE_FILES[0])


def reached(judge: LanguageModelJudge, data: Path, *, count: int, seed: int) -> Reached:
    """The figures over at most `count` ballots about documents held back."""
    held = sources(data, held_back=True, names=tuple(RULES))
    maker = BallotMaker(held, seed=seed)
    right, wrong, chosen, none = list[float](), list[float](), list[bool](), list[bool]()
    asked = 0
    for at, place in enumerate(order(held, passes=1.0, seed=seed)[:count]):
        ballot = maker.ballot(at, *place)
        if ballot is None:
            continue
        asked += 1
        scores = judge.judge(ballot.question, ballot.candidates)
        for score, is_right in zip(scores, ballot.right, strict=True):
            (right if is_right else wrong).append(score)
        best = max(range(len(scores)), key=scores.__getitem__)
        if any(ballot.right):
            chosen.append(ballot.right[best])
        else:
            none.append(scores[best] <= 0)
    above = np.searchsorted(np.sort(wrong), right) / len(wrong)
    return Reached(asked, float(np.mean(chosen)), float(above.mean()), float(np.mean(none)))


def _went_on(recipe: Recipe) -> Sequence[str]:
    if not recipe.judge:
        return ()
    return (f"The training went on from the judge whose weights have the SHA-256 `{recipe.judge}`.",)


def card_of(recipe: Recipe, trained: Sequence[Source], found: Reached) -> str:
    """The model card, as Markdown; `trained` are the sets that it trained on."""
    return "\n".join(
        [
            "# A small judge of what answers a question",
            "",
            f"The first {LAYERS} layers of {_BASE.name}, changed by products of rank {recipe.rank} (Hu et al.",
            "2021, arXiv:2106.09685) and one score, read at the end of each candidate: the log-odds that it answers.",
            "The question is read once; each candidate, with the title above and the sentence before it, sees the",
            "question and itself. Footnote uses the scores to choose what it quotes (`app.answering.quoting.score`).",
            "",
            f"The base is under {_BASE.licence}, and so are these weights. The question sets below keep their own",
            "terms, and none of their text is in this folder.",
            "",
            "## Training",
            "",
            "| set | what it is | licence as stated | questions | share | SHA-256 of its passages |",
            "|---|---|---|---|---|---|",
            *rows(trained),
            "",
            f"{recipe.steps} steps of {recipe.ballots} questions, each with at most {MOST} candidates: units of the",
            "passage that answers and of near ones; about a third has no right candidate, most of these because people",
            "wrote the question so. The loss is the cross entropy over the candidates and none, and that of each",
            f"candidate alone. AdamW, rate {recipe.learning_rate:g} ({recipe.head_learning_rate:g} in the head), with",
            "linear warm-up and decay; the base is frozen, in bfloat16 where the processor multiplies it.",
            f"Seed {recipe.seed}.",
            *_went_on(recipe),
            "",
            "## Results on documents that never trained",
            "",
            f"Of {found.ballots} questions made in the same way: where one is right, the likeliest candidate is right",
            f"{found.chosen:.3f} of the time; where none is, none is above even odds {found.none:.3f} of the time; a",
            f"right candidate scores above a wrong one with probability {found.auc:.3f}.",
            "",
            "## Limits",
            "",
            "- English only.",
            "- It sees a candidate with its title and the sentence before it, not its whole passage.",
            "- It counts nothing and adds nothing.",
            "",
            "## Train it again",
            "",
            "```",
            "make judge SETS=FOLDER_WITH_THE_SETS",
            "```",
            "",
            "```json",
            json.dumps(
                {
                    "recipe": asdict(recipe),
                    "python": platform.python_version(),
                    **{name: version(name) for name in _NAMES},
                },
                indent=2,
            ),
            "```",
            "",
        ]
    )


def main(arguments: Iterable[str] | None = None) -> None:
    """Write the judge, measure it, and write its card."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.candidate_judge.publish", description=__doc__)
    parser.add_argument("trained", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=1000, help="for the card")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    recipe = Recipe(**torch.load(chosen.trained / STATE, map_location="cpu", weights_only=True)["recipe"])
    save_judge(load_file(chosen.trained / TRAINED), chosen.out)
    write_judge_manifest(chosen.out, name=NAME, base=_BASE, licence=_BASE.licence)
    base = Path(resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir))
    judge = LanguageModelJudge.load(chosen.out, base)
    card = card_of(recipe, sources(chosen.data), reached(judge, chosen.data, count=chosen.questions, seed=recipe.seed))
    (chosen.out / "README.md").write_text(card, encoding="utf-8")
    Console(highlight=False).print(card, markup=False)


if __name__ == "__main__":
    main()
