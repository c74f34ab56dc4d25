"""`python -m app.tuning.evidence_reader.publish TRAINED SETS OUT`: makes the folder of a reader that ships.

TRAINED is the folder of a finished training, of `run` or a stage of `from_pack`; SETS is the one with the question
sets; `--before` names the folders of the trainings that TRAINED went on from, the first one first. The weights are
calibrated and measured on documents held back from training; OUT gets them in half precision, with a manifest and a
model card.
"""

import argparse
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from app.models.catalog import ALL_MINILM_L6_V2
from app.models.folder import resolve
from app.models.span_reader import write_reader_manifest
from app.settings import DEFAULT_EMBEDDER, load_settings
from app.tuning.evidence_reader.evaluate import UNSEEN_SETS, Figures, Judge, figures, load_model
from app.tuning.evidence_reader.from_pack import SAID
from app.tuning.evidence_reader.losses import Weights
from app.tuning.evidence_reader.mixture import RULES, Source, shares, sources
from app.tuning.evidence_reader.training import STATE, TRAINED, Recipe
from app.tuning.span_reader.calibration import Calibrated, calibrate, marker_of
from app.tuning.span_reader.cases import SHOWN
from app.tuning.span_reader.run import corpora
from retrieval.plain_tokenizer import plain_tokenizer
from retrieval.span_model import SpanModel

NAME = "evidence-minilm-l6"
_NAMES = ("torch", "transformers", "tokenizers", "numpy")
WHAT = {
    "squad-train-44": (
        "44 articles of SQuAD 1.1, with unanswerable questions of SQuAD 2.0 (Rajpurkar et al. 2016, 2018)",
        "CC BY-SA 4.0",
    ),
    "squadshift-new-wiki": ("SQuADShifts, new Wikipedia part (Miller et al. 2020)", "none stated; usually CC BY 4.0"),
    "nq-gold": ("Natural Questions with their gold paragraphs (Kwiatkowski et al. 2019)", "CC BY-SA 3.0"),
    "wtq-lookups": ("WikiTableQuestions whose answer is one cell (Pasupat and Liang 2015)", "CC BY-SA 4.0"),
    "ait-qa": ("AIT-QA, tables of airlines' reports (Katsis et al. 2022)", "CDLA-Sharing 1.0"),
    "tatqa-test-gold": ("TAT-QA, test part (Zhu et al. 2021)", "CC BY 4.0"),
    "tatqa-dev": ("TAT-QA, development part (Zhu et al. 2021)", "CC BY 4.0"),
    "sleepqa": ("SleepQA (Bojic et al. 2022)", "MIT; articles keep their own terms"),
    "selqa": ("SelQA, dev and test parts (Jurczyk et al. 2016)", "Apache-2.0"),
    "quoref-contrast": ("Quoref's contrast set (Gardner et al. 2020)", "CC BY 4.0"),
    "squadshift-amazon": ("SQuADShifts, Amazon part (Miller et al. 2020)", "none stated; usually CC BY 4.0"),
    "squadshift-reddit": ("SQuADShifts, Reddit part (Miller et al. 2020)", "none stated; usually CC BY 4.0"),
    "fairytaleqa": ("FairytaleQA (Xu et al. 2022)", "Apache-2.0"),
    "fetaqa": ("FeTaQA, dev and test parts (Nan et al. 2022); trains the tags alone", "CC BY-SA 4.0"),
    "qamr": ("QAMR, dev and test parts (Michael et al. 2018)", "MIT"),
    "squad2-train-unans": ("part of SQuAD 2.0's training questions (Rajpurkar et al. 2018)", "CC BY-SA 4.0"),
    "doqa-forums": ("DoQA (Campos et al. 2020)", "CC BY-SA 4.0"),
    "tedq-talks": ("TED-Q (Westera et al. 2020)", "none stated; talks CC BY 4.0"),
    "molweni-chat": ("Molweni, test part (Li et al. 2020)", "Apache-2.0"),
    "condaqa": ("CondaQA, dev and test parts (Ravichander et al. 2022)", "Apache-2.0; text CC BY-SA"),
    "synthetic-forms": ("forms, receipts and tables written by rule", "none needed"),
}
"""By the set's name what it is, and its licence as stated."""

_PAIRS = (
    "Every group has an unanswerable question that people wrote beside an answerable one of the same passage, whose\n"
    "margin is to be the higher of the two (Burges et al. 2005, RankNet)."
)
_PACKED = (
    "make evidence-pack SETS=FOLDER_WITH_THE_SETS PACK=build/evidence.pack",
    "make evidence-reader-gpu PACK=build/evidence.pack BASE=FOLDER_OF_ALL_MINILM",
)


@dataclass(frozen=True, slots=True)
class Training:
    """How the weights came to be: the recipe, the number of groups, and the reader they started from, "" for none.

    `packed` is where they were trained from a pack.
    """

    recipe: Recipe
    groups: int
    reader: str
    packed: bool = False


def publish(model: SpanModel, weights: Mapping[str, Any], out: Path, *, calibrated: Calibrated, card: str) -> None:
    """Writes the trained weights, the manifest with their calibration, and the model card.

    Args:
        model: The model with the weights; its names must include all of theirs.
        weights: The trained ones.
        out: The folder.
        calibrated: From held-back questions.
        card: The model card, as Markdown.

    Raises:
        ValueError: A weight overflows half precision, or is of another model.
        OSError: The folder cannot be written.
    """
    from retrieval.span_reader import save_reader

    if strange := sorted(weights.keys() - model.state_dict().keys()):
        raise ValueError(f"weights of another model: {strange[0]}")
    save_reader(weights, out)
    write_reader_manifest(
        out,
        name=NAME,
        base=ALL_MINILM_L6_V2,
        licence=ALL_MINILM_L6_V2.licence,
        slope=calibrated.calibration.slope,
        bias=calibrated.calibration.bias,
        threshold=calibrated.calibration.threshold,
    )
    (out / "README.md").write_text(card, encoding="utf-8")


def card_of(
    trainings: Sequence[Training],
    trained: Sequence[Source],
    *,
    calibrated: Calibrated,
    measured: Mapping[str, Figures],
) -> str:
    """The model card, as Markdown.

    Args:
        trainings: How the weights came to be: the last training, behind those that it went on from.
        trained: The sets.
        calibrated: From held-back questions.
        measured: By set the figures of questions about documents that never trained.
    """
    *before, last = trainings
    recipe, calibration = last.recipe, calibrated.calibration
    return "\n".join(
        [
            "# A small reader that points at answers and tags evidence",
            "",
            f"{ALL_MINILM_L6_V2.name}, all six layers trained on questions with passages. Each token of a passage gets",
            "three scores: an answer begins here, it ends here, this is evidence. The first token means no answer.",
            "The reader writes no text. Footnote uses its scores to choose what it quotes and what it marks.",
            "",
            f"The base is under {ALL_MINILM_L6_V2.licence}, and so are these weights. The question sets below keep",
            "their own terms, and none of their text is in this folder.",
            "",
            "## Training",
            "",
            "| set | what it is | licence as stated | questions | share | SHA-256 of its passages |",
            "|---|---|---|---|---|---|",
            *rows(trained),
            "",
            f"{last.groups} groups in steps of {recipe.groups}: a question with the passage that answers it and up",
            f"to {recipe.near} near ones of the same document, whose spans share one normalisation with one null",
            "(Clark and Gardner 2018, arXiv:1710.10723); often a second question that the passage does not answer; the",
            f"tokens of the answer as tags (Segal et al. 2020, arXiv:1909.13375). AdamW, rate {recipe.learning_rate:g}",
            f"({recipe.head_learning_rate:g} in the heads), linear with warm-up; the weights are averaged over the",
            f"last {recipe.averaged:.0%} of the steps. Embeddings are frozen. Seed {recipe.seed}.",
            *([_PAIRS] if recipe.pairs else []),
            *(line for one in reversed(before) for line in _before(one)),
            *([f"The training started from the reader `{trainings[0].reader}`."] if trainings[0].reader else []),
            "",
            "## Results on documents that never trained",
            "",
            "Each question is asked of the passage that answers and of the three nearest others of its document.",
            "*apart* is the AUC of the margin against the same question without the right passage, *changed* against a",
            "question that the passage does not answer.",
            "",
            "| set | questions | exact | F1 | contained | right passage | apart | changed | tags F1 |",
            "|---|---|---|---|---|---|---|---|---|",
            *(_figures(name, one) for name, one in measured.items()),
            "",
            f"The probability of an answer is the logistic function of {calibration.slope:.4f} × margin",
            f"{calibration.bias:+.4f}, fitted to the best margin of {SHOWN} passages. At {calibration.threshold:.4f} a",
            "tenth of the answerable questions is refused. Footnote's own answers do not use this probability: they",
            "use margins and tags in a score over a whole collection (`app.answering.quoting.score`).",
            "",
            "## Limits",
            "",
            "- English only.",
            "- In tables it finds the right row more often than the right cell.",
            "- It counts nothing, adds nothing, and reads each passage by itself.",
            "",
            "## Train it again",
            "",
            "```",
            *(_PACKED if last.packed else ["make evidence-reader SETS=FOLDER_WITH_THE_SETS"]),
            "```",
            "",
            "```json",
            json.dumps(
                {
                    "recipes": [asdict(one.recipe) for one in trainings],
                    "python": platform.python_version(),
                    **{name: version(name) for name in _NAMES},
                },
                indent=2,
            ),
            "```",
            "",
        ]
    )


def _before(training: Training) -> Iterable[str]:
    recipe = training.recipe
    yield f"Before them {training.groups} groups in steps of {recipe.groups}, seed {recipe.seed}."
    if recipe.pairs:
        yield _PAIRS


def rows(trained: Sequence[Source]) -> Iterable[str]:
    """The rows of a card's table of training sets."""
    for source, share in zip(trained, shares(trained), strict=True):
        what, licence = WHAT.get(source.name, ("", "not known"))
        fingerprint = source.question_set.fingerprint
        yield f"| {source.name} | {what} | {licence} | {len(source.questions)} | {share:.1%} | `{fingerprint}` |"


def _figures(name: str, one: Figures) -> str:
    values = (one.exact, one.f1, one.contains, one.right_passage, one.apart_auc, one.unanswered_auc, one.tag_f1)
    shown = " | ".join("" if value is None else f"{value:.3f}" for value in values)
    return f"| {name} | {one.questions} | {shown} |"


def training_of(folder: Path, *, reader: str) -> Training:
    """What a finished training says of itself."""
    import torch

    if (folder / SAID).is_file():
        said = json.loads((folder / SAID).read_text(encoding="utf-8"))
        return Training(_recipe(said["recipe"]), said["groups"], reader, packed=True)
    state: dict[str, Any] = torch.load(folder / STATE, map_location="cpu", weights_only=True)
    recipe = _recipe(state["recipe"])
    return Training(recipe, state["steps"] * recipe.groups, reader)


def _recipe(said: Mapping[str, Any]) -> Recipe:
    return Recipe(**{**said, "weights": Weights(**said["weights"])})


def main(arguments: Iterable[str] | None = None) -> None:
    """Calibrate, measure, and write the reader."""
    from safetensors.torch import load_file

    parser = argparse.ArgumentParser(prog="python -m app.tuning.evidence_reader.publish", description=__doc__)
    parser.add_argument("trained", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=60, help="of each set, for the card")
    parser.add_argument("--before", type=Path, nargs="+", default=[], help="trainings that this one went on from")
    parser.add_argument("--reader", default="", help="name of the reader that the first training started from")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    console = Console(highlight=False)
    base = Path(resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir))
    trainings = [training_of(folder, reader=chosen.reader) for folder in (*chosen.before, chosen.trained)]
    seed = trainings[-1].recipe.seed
    model, _, _ = load_model(chosen.trained / TRAINED, base)
    tokenizer = plain_tokenizer(base)
    held = corpora(chosen.data, seed=seed, held_back=True)
    calibrated = calibrate(held, marker_of(model, tokenizer), seed=seed)
    measured = {}
    for name in (*UNSEEN_SETS, *RULES):
        (source,) = sources(chosen.data, held_back=True, names=[name])
        judge = Judge(model, tokenizer, source)
        if outcomes := judge.outcomes(most=chosen.questions, console=console):
            measured[name] = figures(outcomes)
    card = card_of(trainings, sources(chosen.data), calibrated=calibrated, measured=measured)
    publish(model, load_file(chosen.trained / TRAINED), chosen.out, calibrated=calibrated, card=card)
    console.print(card, markup=False)


if __name__ == "__main__":
    main()
