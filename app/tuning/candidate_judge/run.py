"""`python -m app.tuning.candidate_judge.run SETS OUT`: train the judge of candidates, or go on where it stopped.

On several cores `torchrun --nproc-per-node 2 -m app.tuning.candidate_judge.run SETS OUT --threads 1` is faster than
threads. OUT holds `state.pt`, written every ten minutes and at a signal, and finally `trained.safetensors`.
"""

import argparse
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from app.models.folder import resolve
from app.models.manifest import sha256_of
from app.settings import DEFAULT_GENERATOR, load_settings
from app.tuning.adapter.run import joined
from app.tuning.candidate_judge.ballots import Ballot, BallotMaker
from app.tuning.candidate_judge.model import JudgeModel, loss_of, told
from app.tuning.evidence_reader.mixture import RULES, order, sources
from app.tuning.processes import add_up, worker, workers
from retrieval.judge_layout import JUDGE_FILES, layout
from retrieval.plain_tokenizer import plain_tokenizer

STATE, TRAINED = "state.pt", "trained.safetensors"
_RECENT = 40  # steps averaged by a line of progress
_LINE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The hyperparameters, which with the sets determine the result. `ballots` make a step.

    The rate rises linearly over the share `warmup` of the steps, then falls linearly to zero. `judge` is the SHA-256 of
    the weights that the training goes on from, empty where it begins with none.
    """

    rank: int = 8
    steps: int = 500
    ballots: int = 12
    learning_rate: float = 6e-4
    head_learning_rate: float = 2e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 37
    judge: str = ""


class Learnt(NamedTuple):
    """A step over this process's ballots: mean loss, and the share whose likeliest outcome is right."""

    loss: float
    right: float


class Trainer:
    """Runs a recipe step by step; it can be saved and resumed with the same result, as one process or as several."""

    def __init__(self, model: JudgeModel, recipe: Recipe) -> None:
        self.model = model
        self.step = 0
        self._recipe = recipe
        own = model.trained()
        self._optimizer = torch.optim.AdamW(
            [
                {"params": [w for name, w in own.items() if "head." not in name], "peak": recipe.learning_rate},
                {"params": [w for name, w in own.items() if "head." in name], "peak": recipe.head_learning_rate},
            ],
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            betas=(0.9, 0.98),
        )

    def learn(self, ballots: Iterable[tuple[Ballot, Any]]) -> Learnt:
        """Takes one step over this process's ballots and their layouts."""
        losses, right = [], []
        for group in self._optimizer.param_groups:
            group["lr"] = group["peak"] * rate(self.step, self._recipe)
        for ballot, laid_out in ballots:
            scores = self.model(laid_out)
            loss = loss_of(scores, ballot.right)
            (loss / self._recipe.ballots).backward()  # type: ignore[no-untyped-call]
            losses.append(float(loss.detach()))
            right.append(told(scores.detach(), ballot))
        weights = list(self.model.trained().values())
        add_up(weights)
        torch.nn.utils.clip_grad_norm_(weights, self._recipe.clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return Learnt(sum(losses) / max(1, len(losses)), sum(right) / max(1, len(right)))

    def save_state(self, file: Path) -> None:
        """Saves the state for `load_state` atomically."""
        new = file.with_suffix(".new")
        weights = {name: weight.detach() for name, weight in self.model.trained().items()}
        torch.save(
            {
                "weights": weights,
                "optimizer": self._optimizer.state_dict(),
                "step": self.step,
                "recipe": asdict(self._recipe),
            },
            new,
        )
        new.replace(file)

    def load_state(self, file: Path) -> None:
        """Resumes from the state that `save_state` wrote."""
        state = torch.load(file, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["weights"], strict=False)
        self._optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])


def rate(step: int, recipe: Recipe) -> float:
    """Share of the peak rate in a step."""
    warm = max(1, round(recipe.steps * recipe.warmup))
    return min((step + 1) / warm, (recipe.steps - step) / max(1, recipe.steps - warm))


def steps_of(data: Path, tokenizer: Any, recipe: Recipe, *, first: int) -> Iterator[list[tuple[Ballot, Any]]]:
    """This process's ballots of each step from `first` on, with their layouts."""
    found = sources(data, names=tuple(RULES))
    asked = order(found, passes=1.0, seed=recipe.seed)
    maker = BallotMaker(found, seed=recipe.seed)
    for step in range(first, recipe.steps):
        made = []
        for at in range(step * recipe.ballots + worker(), (step + 1) * recipe.ballots, workers()):
            ballot = maker.ballot(at, *asked[at % len(asked)])
            if ballot is not None:
                made.append((ballot, layout(tokenizer, ballot.question, ballot.candidates)))
        yield made


def _digest(judge: Path | None) -> str:
    """The SHA-256 of a judge's weights, empty for none."""
    return "" if judge is None else sha256_of(judge / JUDGE_FILES[0])


def _started(base: Path, recipe: Recipe, *, judge: Path | None, half: bool) -> JudgeModel:
    """The model before its first step, with the weights of `judge` if there is one."""
    model = JudgeModel.from_base(base, rank=recipe.rank, half=half)
    if judge is not None:
        model.go_on_from(judge)
    return model


def main(arguments: Iterable[str] | None = None) -> None:
    """Train, show progress, and write the trained weights."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.candidate_judge.run", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the question sets, those that train in it or in `train`")
    parser.add_argument("out", type=Path, help="folder outside the repository; training goes on from what it holds")
    parser.add_argument("--steps", type=int, default=Recipe().steps)
    parser.add_argument("--ballots", type=int, default=Recipe().ballots, help="ballots a step")
    parser.add_argument("--seed", type=int, default=Recipe().seed)
    parser.add_argument("--judge", type=Path, help="folder of a judge to go on from, as it ships; use another seed")
    parser.add_argument("--minutes", type=float, default=10.0, help="between two states saved")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--float32", action="store_true", help="also where the processor multiplies bfloat16")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    console = joined(chosen.threads)
    recipe = Recipe(steps=chosen.steps, ballots=chosen.ballots, seed=chosen.seed, judge=_digest(chosen.judge))
    chosen.out.mkdir(parents=True, exist_ok=True)
    base = Path(resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir))
    torch.manual_seed(recipe.seed)
    trainer = Trainer(_started(base, recipe, judge=chosen.judge, half=not chosen.float32), recipe)
    state = chosen.out / STATE
    if state.exists():
        trainer.load_state(state)
        console.print(f"going on at step {trainer.step}")
    ending: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        ending.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN if console.quiet else end)
    recent: deque[Learnt] = deque(maxlen=_RECENT)
    began, first = time.monotonic(), trainer.step
    shown = saved = began
    for made in steps_of(chosen.data, plain_tokenizer(base), recipe, first=first):
        recent.append(trainer.learn(made))
        now = time.monotonic()
        if now - shown >= _LINE_SECONDS or trainer.step in (first + 1, recipe.steps):
            loss, right = (sum(part) / len(recent) for part in zip(*recent, strict=True))
            took = (now - began) / (trainer.step - first)
            console.print(
                f"{time.strftime('%H:%M:%S')} step {trainer.step}/{recipe.steps} loss {loss:.3f} right {right:.3f} | "
                f"{took:.1f} s a step, {took * (recipe.steps - trainer.step) / 3600:.2f} h left",
                soft_wrap=True,
            )
            shown = now
        if not console.quiet and (now - saved >= 60 * chosen.minutes or ending):
            trainer.save_state(state)
            saved = now
        if ending:
            return
    if not console.quiet:
        trainer.save_state(state)
        new = chosen.out / f"{TRAINED}.new"
        save_file({name: weight.detach().contiguous() for name, weight in trainer.model.trained().items()}, new)
        new.replace(chosen.out / TRAINED)
        console.print(f"done: {chosen.out / TRAINED}")


if __name__ == "__main__":
    main()
