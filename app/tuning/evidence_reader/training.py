"""Trains the second reader step by step: AdamW over groups, weights averaged at the end, taken up where it stopped."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from app.tuning.evidence_reader.groups import NEAR, Group, Grouper
from app.tuning.evidence_reader.losses import Losses, Weights, losses_of
from app.tuning.evidence_reader.model import EvidenceModel
from app.tuning.processes import add_up, worker, workers
from app.tuning.span_reader.training import trained_weights
from retrieval.reader_config import READER_FILES

STATE, TRAINED = "state.pt", "trained.safetensors"
_HEADS = ("head.", "tag.")
_TOGETHER = 4  # groups with a graph in memory at once: about a gigabyte
_TOGETHER_ON_CUDA = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The hyperparameters of a training, which with the sets determine its result. `groups` make a step.

    Embeddings are frozen. The rate rises linearly over the share `warmup` of the steps, then falls linearly
    to zero; over the last share `averaged` the weights of every step are averaged (Izmailov et al. 2018,
    arXiv:1803.05407).

    `near` passages stand besides the right one. With `pairs` every group has an unanswerable question that people wrote
    and an answerable one of the same passage.
    """

    groups: int = 48
    passes: float = 2.0
    learning_rate: float = 1e-4
    head_learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    averaged: float = 0.25
    weights: Weights = field(default_factory=Weights)
    seed: int = 11
    near: int = NEAR
    pairs: bool = False


class Told(NamedTuple):
    """A step over this process's groups: the mean of each part of the loss, and the tokens read."""

    loss: float
    pointed: float
    apart: float
    unanswered: float
    tags: float
    paired: float
    tokens: int


Maker = Callable[[int], Sequence[Group]]
"""The groups this process reads in a step."""


def start(
    base: Path, recipe: Recipe, *, reader: Path | None = None, half: bool = False, device: str = "cpu"
) -> EvidenceModel:
    """The model before its first step; its embeddings do not train.

    Args:
        base: The folder of the embedder.
        recipe: Its seed draws the heads' first weights.
        reader: The span reader of the same base to go on from, its folder or the weights of a finished training; None
            for the base with new heads.
        half: Whether the encoder will multiply in bfloat16, which decides its kernel of attention.
        device: Where it trains, by torch's name.

    Raises:
        ValueError: The reader's weights do not fit the base.
    """
    torch.manual_seed(recipe.seed)
    model = EvidenceModel.from_base(base, tags=True)
    if reader is not None:
        weights = load_file(weights_of(reader))
        if unknown := sorted(weights.keys() - model.state_dict().keys()):
            raise ValueError(f"the reader in {reader.name} has weights that the base does not have: {unknown[0]}")
        model.load_state_dict(weights, strict=False)
    for name, weight in model.encoder.named_parameters():
        weight.requires_grad = not name.startswith(("embeddings.", "pooler."))
    # In bfloat16 on a CPU the fused kernel goes back four times slower than the plain products (torch 2.13); in float32
    # a whole step is 1.2 times faster with it.
    model.encoder.set_attn_implementation("eager" if half and device == "cpu" else "sdpa")
    return model.to(device)


def weights_of(reader: Path) -> Path:
    """The file with the weights of a span reader, whose folder or whose file it is."""
    return reader / READER_FILES[0] if reader.is_dir() else reader


def rate(step: int, steps: int, recipe: Recipe) -> float:
    """Share of the peak rate in a step."""
    warm = max(1, round(steps * recipe.warmup))
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))


def makers(grouper: Grouper, order: Sequence[tuple[int, int]], recipe: Recipe) -> Maker:
    """Makes the groups of a step, of which every process takes a share of about the same size."""

    def made(step: int) -> list[Group]:
        places = range(step * recipe.groups, (step + 1) * recipe.groups)
        sorted_ = sorted(places, key=lambda at: -grouper.estimate(*order[at]))
        # Alternating directions (boustrophedon), so that no process always gets the longer one.
        own = [at for turn, at in enumerate(sorted_) if _turn(turn) == worker()]
        found = (grouper.group(at, *order[at]) for at in own)
        return [group for group in found if group is not None]

    return made


class Trainer:
    """Trains by a recipe; its state can be saved and resumed bit for bit.

    Where torch.distributed is initialised the processes share each step's groups and add their gradients.
    """

    def __init__(self, model: EvidenceModel, recipe: Recipe, *, steps: int, half: bool, fingerprint: str = "") -> None:
        """With `half` the encoder multiplies in bfloat16; `fingerprint` is of the order that is gone through."""
        self.model = model
        self.steps = steps
        self.step = 0
        self.reading = False  # while nothing but gradients changes: a step can be given up and taken again
        self._recipe = recipe
        self._half = half
        self._fingerprint = fingerprint
        self._trained = [weight for weight in model.parameters() if weight.requires_grad]
        heads = [weight for name, weight in model.named_parameters() if name.startswith(_HEADS)]
        encoder = [weight for weight in model.encoder.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": encoder, "peak": recipe.learning_rate},
                {"params": heads, "peak": recipe.head_learning_rate},
            ],
            weight_decay=recipe.weight_decay,
        )
        self._average: dict[str, Tensor] = {}
        self._averaged = 0

    def run(self, maker: Maker) -> Iterator[Told]:
        """Runs the remaining steps and yields the result of each."""
        self.model.train()
        while self.step < self.steps:
            for group in self._optimizer.param_groups:
                group["lr"] = group["peak"] * rate(self.step, self.steps, self._recipe)
            self.reading = True
            told = self._backward(maker(self.step))
            add_up(self._trained)
            self.reading = False
            torch.nn.utils.clip_grad_norm_(self._trained, self._recipe.clip)
            self._optimizer.step()
            self._optimizer.zero_grad()
            self.step += 1
            if self.step > self.steps * (1 - self._recipe.averaged):
                self._take_in()
            yield told

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The trained weights: the average as soon as there is one, else those of the last step."""
        return self._average or trained_weights(self.model)

    def save_state(self, file: Path) -> None:
        """Everything `load_state` needs, written whole or not at all."""
        state = {
            "recipe": asdict(self._recipe),
            "fingerprint": self._fingerprint,
            "steps": self.steps,
            "step": self.step,
            "weights": trained_weights(self.model),
            "optimizer": self._optimizer.state_dict(),
            "average": self._average,
            "averaged": self._averaged,
            "random": torch.get_rng_state(),
        }
        new = file.with_suffix(".new")
        with new.open("wb") as opened:
            torch.save(state, opened)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(file)

    def load_state(self, file: Path) -> None:
        """Take up where `save_state` was called.

        Raises:
            ValueError: It was saved by a training of another recipe or over other groups.
        """
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        saved = (state["recipe"], state["steps"], state["fingerprint"])
        if saved != (asdict(self._recipe), self.steps, self._fingerprint):
            raise ValueError(f"{file.name} is of a training of another recipe or of other sets")
        self.model.load_state_dict(state["weights"], strict=False)
        self._optimizer.load_state_dict(state["optimizer"])
        self._average = {name: one.to(self.model.head.weight.device) for name, one in state["average"].items()}
        self._averaged = int(state["averaged"])
        self.step = int(state["step"])
        torch.set_rng_state(state["random"])

    def _backward(self, groups: Sequence[Group]) -> Told:
        sums = [0.0] * (1 + len(Losses._fields))
        together = _TOGETHER_ON_CUDA if self.model.head.weight.is_cuda else _TOGETHER
        for first in range(0, len(groups), together):
            losses = losses_of(self.model, groups[first : first + together], half=self._half)
            total = losses.total(self._recipe.weights)
            (total / self._recipe.groups).backward()  # type: ignore[no-untyped-call]
            parts = torch.stack([total, *losses]).tolist()  # one wait for a GPU, not six
            sums = [before + part for before, part in zip(sums, parts, strict=True)]
        loss, pointed, apart, unanswered, tags, paired = (part / max(1, len(groups)) for part in sums)
        return Told(loss, pointed, apart, unanswered, tags, paired, sum(group.tokens for group in groups))

    def _take_in(self) -> None:
        self._averaged += 1
        with torch.no_grad():
            for name, weight in trained_weights(self.model).items():
                if name not in self._average:
                    self._average[name] = weight.clone()
                else:
                    self._average[name] += (weight - self._average[name]) / self._averaged


def write_weights(trainer: Trainer, file: Path) -> None:
    """Writes the trained weights in float32, atomically."""
    new = file.with_suffix(".new")
    save_file({name: weight.contiguous() for name, weight in trainer.weights.items()}, new)
    new.replace(file)


def _turn(place: int) -> int:
    at = place % (2 * workers())
    return min(at, 2 * workers() - 1 - at)
