"""`python -m app.tuning.evidence_reader.from_pack PACK OUT`: trains the reader from a pack, on one GPU.

Each `--stage PARTS PASSES RATE` is a training of its own with warm-up and decay, from the weights that the stage before
it ended with; PARTS are `mixture`, `pairs`, or both with a comma between them. After each the weights and the recipe
go into the folder OUT/STAGE, which `publish` takes, and figures on every part that never trains are lines of
OUT/figures.jsonl. It needs only numpy, rich, safetensors, torch and transformers, and the folder of the embedder that
the reader stands on.
"""

import argparse
import json
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console

from app.tuning.evidence_reader.groups import Group
from app.tuning.evidence_reader.losses import Losses
from app.tuning.evidence_reader.model import EvidenceModel
from app.tuning.evidence_reader.packed import MIXTURE, PAIRS, Pack
from app.tuning.evidence_reader.packed_figures import figures_of
from app.tuning.evidence_reader.training import TRAINED, Maker, Recipe, Trainer, start, weights_of, write_weights

SAID = "training.json"
"""In the folder of a stage: its recipe and the number of its groups."""
_TOLD_EVERY = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Stage:
    """One training: the numbers of its groups in their order, and the recipe."""

    name: str
    order: Sequence[int]
    recipe: Recipe

    @property
    def steps(self) -> int:
        """Whole steps; the groups left over are not read."""
        return len(self.order) // self.recipe.groups


def stage_of(pack: Pack, name: str, parts: str, *, recipe: Recipe) -> Stage:
    """The stage that goes through parts of a pack `recipe.passes` times, each time in a new order.

    Raises:
        ValueError: A part is not in the pack, or it measures.
    """
    numbers: list[int] = []
    for part in parts.split(","):
        if part not in (MIXTURE, PAIRS) or part not in pack.parts:
            raise ValueError(f"{part} is no part that trains")
        numbers += pack.parts[part]
    random_ = random.Random(f"{recipe.seed} {name}")  # noqa: S311  # nothing secret is drawn
    order: list[int] = []
    while len(order) < round(recipe.passes * len(numbers)):
        order += random_.sample(numbers, len(numbers))
    return Stage(name, order[: round(recipe.passes * len(numbers))], recipe)


def maker_of(pack: Pack, stage: Stage) -> Maker:
    """Makes the groups of a step."""
    size = stage.recipe.groups

    def made(step: int) -> list[Group]:
        return [pack.group(number) for number in stage.order[step * size : (step + 1) * size]]

    return made


def train(trainer: Trainer, maker: Maker, console: Console, *, stage: Stage, until: int = -1) -> None:
    """Run the steps of a stage and tell of the progress in lines."""
    began = last = time.monotonic()
    sums = [0.0] * (1 + len(Losses._fields))
    count = 0
    for told in trainer.run(maker):
        count += 1
        sums = [before + value for before, value in zip(sums, told, strict=False)]
        now = time.monotonic()
        if now - last >= _TOLD_EVERY or trainer.step in (1, stage.steps, until):
            loss, *parts = (value / count for value in sums)
            said = " ".join(f"{name} {value:.3f}" for name, value in zip(Losses._fields, parts, strict=True))
            speed = trainer.step * stage.recipe.groups / (now - began)
            console.print(
                f"{stage.name} step {trainer.step}/{stage.steps} loss {loss:.3f} {said} | {speed:.0f} groups/s"
            )
            last, sums, count = now, [0.0] * len(sums), 0
        if trainer.step == until:
            break


def main(arguments: Iterable[str] | None = None) -> None:
    """Train stage after stage."""
    chosen = _parsed(arguments)
    console = Console(highlight=False, soft_wrap=True)
    pack = Pack.read(chosen.pack)
    chosen.out.mkdir(parents=True, exist_ok=True)
    half = chosen.device == "cuda" and not chosen.float32
    torch.set_float32_matmul_precision("high")
    reader = chosen.reader
    measured = [name for name in pack.parts if name not in (MIXTURE, PAIRS)]
    for number, (parts, passes, peak) in enumerate(chosen.stage):
        recipe = Recipe(
            groups=chosen.groups,
            passes=float(passes),
            learning_rate=float(peak),
            head_learning_rate=chosen.head * float(peak),
            seed=chosen.seed + number,
            near=chosen.near,
            pairs=parts == PAIRS,
        )
        stage = stage_of(pack, f"{number}-{parts.replace(',', '-')}", parts, recipe=recipe)
        model = start(chosen.base, recipe, reader=reader, half=half, device=chosen.device)
        if not number:
            _measure(pack, measured, model, chosen.out, "before", half=half, console=console)
        trainer = Trainer(model, recipe, steps=stage.steps, half=half)
        train(trainer, maker_of(pack, stage), console, stage=stage, until=chosen.until)
        folder = chosen.out / stage.name
        folder.mkdir(exist_ok=True)
        reader = folder / TRAINED
        write_weights(trainer, reader)
        told = {"recipe": asdict(recipe), "groups": trainer.step * recipe.groups}
        (folder / SAID).write_text(json.dumps(told, indent=2), encoding="utf-8")
        model.load_state_dict(dict(trainer.weights), strict=False)
        _measure(pack, measured, model, chosen.out, stage.name, half=half, console=console, recipe=recipe)


def _measure(
    pack: Pack,
    names: Sequence[str],
    model: EvidenceModel,
    out: Path,
    said: str,
    *,
    half: bool,
    console: Console,
    recipe: Recipe | None = None,
) -> None:
    for name in names:
        found = figures_of(model, [pack.group(number) for number in pack.parts[name]], half=half)
        row = {"stage": said, "part": name, **asdict(found), "recipe": None if recipe is None else asdict(recipe)}
        with (out / "figures.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        told = ", ".join(f"{key} {value:.4g}" for key, value in asdict(found).items() if value is not None)
        console.print(f"{said}, {name}: {told}", markup=False)


def _parsed(arguments: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m app.tuning.evidence_reader.from_pack", description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", type=Path, required=True, help="folder of the embedder")
    parser.add_argument("--reader", type=Path, help="reader to go on from, its folder or its weights")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu for a trial")
    parser.add_argument(
        "--stage", nargs=3, action="append", metavar=("PARTS", "PASSES", "RATE"), required=True, help="one training"
    )
    parser.add_argument("--groups", type=int, default=Recipe().groups, help="groups a step")
    parser.add_argument("--head", type=float, default=10.0, help="rate of the heads for a rate of 1 elsewhere")
    parser.add_argument("--near", type=int, default=2, help="what the pack was made with, for the record")
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--until", type=int, default=-1, help="stop each stage at this step, for a trial")
    parser.add_argument("--float32", action="store_true", help="also on a GPU")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    if chosen.reader is not None and not weights_of(chosen.reader).is_file():
        parser.error(f"{chosen.reader} is no reader")
    return chosen


if __name__ == "__main__":
    main()
