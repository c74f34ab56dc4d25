"""The model card of a span reader: purpose, training data and calibration results."""

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version

from app.models.catalog import PackagedModel
from app.tuning.adapter.packs import Corpus
from app.tuning.span_reader.calibration import ALL, REFUSED_WRONGLY, Calibrated, Figures
from app.tuning.span_reader.cases import SHOWN, Kind
from app.tuning.span_reader.training import Recipe

_NAMES = ("torch", "transformers", "tokenizers", "numpy")
# What each set is and what its publishers ask, as far as their repositories say.
_SOURCES = {
    "squadshift-new-wiki": (
        "SQuADShifts, new Wikipedia part (Miller et al. 2020, arXiv:2004.14444)",
        "none stated in its repository, usually listed as CC BY 4.0; passages: Wikipedia, CC BY-SA",
    ),
    "nq-gold": (
        "Natural Questions (Kwiatkowski et al. 2019) with their gold paragraphs, as in github.com/nelson-liu/"
        "lost-in-the-middle",
        "usually listed as CC BY-SA 3.0; repository MIT",
    ),
    "hotpotqa-train-100": ("HotpotQA (Yang et al. 2018, arXiv:1809.09600), 100 questions", "CC BY-SA 4.0"),
    "musique-train-100": ("MuSiQue (Trivedi et al. 2022, arXiv:2108.00573), 100 questions", "CC BY 4.0"),
    "tatqa-dev": ("TAT-QA (Zhu et al. 2021, arXiv:2105.07624), development part", "CC BY 4.0; repository MIT"),
}
_KINDS = {
    Kind.NEAR: "three passages near the question, none with the answer",
    Kind.PERTURBED: "the question changed so that its passage no longer answers it",
    Kind.RANDOM: "three passages at random",
}


def card(*, base: PackagedModel, recipe: Recipe, trained: Iterable[Corpus], calibrated: Calibrated) -> str:
    """Renders the card as Markdown; `trained` maps question sets to their number of training examples."""
    calibration = calibrated.calibration
    sets = sorted(name for name in calibrated.measured if name != ALL)
    lines = [
        "# A small span reader",
        "",
        f"{base.name} with its layers from {recipe.frozen_layers + 1} on trained to point at answers: two scores for",
        "every token of a question and a passage read together, where an answer begins and where it ends; the first",
        'token is "no answer". It belongs to Footnote, made by `python -m app.tuning.span_reader.run`. It says nothing',
        "of its own: what it gives is a stretch of a passage, and how likely it is that the passage holds an answer.",
        "",
        f"The base is under {base.licence}, and so are these weights; the question sets below keep their own terms,",
        "and none of their text is in this folder.",
        "",
        "## What it learnt from",
        "",
        "| set | what it is | licence | questions trained | SHA-256 of its passages |",
        "|---|---|---|---|---|",
        *_rows(trained),
        "",
        f"{recipe.steps} steps of {recipe.batch} pairs: each question with the passage that answers it, and most",
        "also with a passage near it that does not, or changed so that its own no longer does. AdamW; the rate goes",
        f"up over {recipe.warmup:.0%} of the steps to {recipe.learning_rate:g} ({recipe.head_learning_rate:g} in the",
        f"head), then down to 0. Embeddings and the first {recipe.frozen_layers} layers stay as they were. No dropout;",
        f"seed {recipe.seed}.",
        "",
        "## What it gives",
        "",
        "On questions about articles held back from training (by the hash of their titles), each asked of",
        f"{SHOWN} whole passages, the right one and two that a search finds. The answer is the one with the greatest",
        "margin over none; contained means that a gold answer stands in it.",
        "",
        "| set | questions | contained | F1 | from the right passage | refused |",
        "|---|---|---|---|---|---|",
        *(_answered(calibrated, name) for name in (*sets, ALL)),
        "",
        "The probability of an answer is the logistic function of",
        f"{calibration.slope:.4f} × margin {calibration.bias:+.4f}, fitted to the best margin of {SHOWN} passages. The",
        f"threshold, {calibration.threshold:.4f}, refuses {REFUSED_WRONGLY:.0%} of those answerable questions. Where",
        "nothing answers it refuses:",
        "",
        "| asked of | questions | refused | AUC |",
        "|---|---|---|---|",
        *(_refused(calibrated.measured[ALL], kind) for kind in _KINDS if kind in calibrated.measured[ALL].cases),
        "",
        "The threshold was chosen on these same questions; the margins were not trained on them.",
        "",
        "## What it is bad at",
        "",
        "- Yes or no, how and why, and anything whose answer does not stand in a passage in one piece.",
        "- Tables, counting and arithmetic: it points at a number, right or not.",
        "- Answers that take two passages: each passage is read by itself.",
        "- Languages other than English: neither base nor training knows them.",
        "- A question with one detail changed: see the second line above.",
        "",
        "## To train it again",
        "",
        "```",
        "make reader SETS=FOLDER_WITH_THE_SETS READER=build/span-minilm-l6",
        "```",
        "",
        "An interrupted run goes on where it stopped; a finished one is calibrated and written again.",
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
    return "\n".join(lines)


def _rows(trained: Iterable[Corpus]) -> Sequence[str]:
    rows = []
    for corpus in trained:
        name = corpus.question_set.name
        what, licence = _SOURCES.get(name, ("", "not known"))
        rows.append(f"| {name} | {what} | {licence} | {len(corpus.examples)} | `{corpus.question_set.fingerprint}` |")
    return rows


def _answered(calibrated: Calibrated, name: str) -> str:
    found = calibrated.measured[name]
    shares = (found.contains, found.f1, found.right_passage, found.refused[Kind.ANSWERABLE])
    return f"| {name} | {found.cases[Kind.ANSWERABLE]} | " + " | ".join(f"{share:.3f}" for share in shares) + " |"


def _refused(found: Figures, kind: Kind) -> str:
    return f"| {_KINDS[kind]} | {found.cases[kind]} | {found.refused[kind]:.3f} | {found.area_under_curve[kind]:.3f} |"
