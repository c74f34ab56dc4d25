"""Trains the embedder's upper layers to point at answers, by AdamW over batches of questions and passages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from app.tuning.processes import worker, workers
from retrieval.span_model import SpanModel, Window, windows_of


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage with the answer's characters in it; None where it does not answer."""

    question: str
    passage: str
    answer: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All hyperparameters. One step uses `batch` pairs."""

    frozen_layers: int = 2
    batch: int = 32
    steps: int = 1000
    learning_rate: float = 2e-4
    head_learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 11


@dataclass(frozen=True, slots=True)
class Target:
    """A window and the token indices of the answer's start and end; 0 and 0 for no answer."""

    window: Window
    start: int
    end: int


def target_of(tokenizer: Any, pair: Pair) -> Target | None:
    """The window of the pair that holds its answer, the first one where there is none; None when none holds it."""
    windows = windows_of(tokenizer, pair.question, pair.passage)
    if pair.answer is None:
        return Target(windows[0], 0, 0) if windows else None
    start, end = pair.answer
    for window in windows:
        inside = [
            window.first + place for place, (first, last) in enumerate(window.offsets) if first < end and last > start
        ]
        whole = window.offsets[0][0] <= start and window.offsets[-1][1] >= end
        if inside and whole:
            return Target(window, inside[0], inside[-1])
    return None


def start(base: Path, recipe: Recipe) -> SpanModel:
    """Creates the model from the base with a new head; embeddings and the lowest layers are frozen."""
    torch.manual_seed(recipe.seed)
    model = SpanModel.from_base(base)
    kept = ("embeddings.", "pooler.", *(f"encoder.layer.{layer}." for layer in range(recipe.frozen_layers)))
    for name, weight in model.encoder.named_parameters():
        weight.requires_grad = not name.startswith(kept)
    return model


def loss_of(model: SpanModel, targets: Sequence[Target]) -> Tensor:
    """The mean negative log-likelihood of start and end tokens."""
    starts, ends = model([target.window for target in targets])
    cross_entropy = torch.nn.functional.cross_entropy
    return cross_entropy(starts, torch.tensor([target.start for target in targets])) + cross_entropy(
        ends, torch.tensor([target.end for target in targets])
    )


class Trainer:
    """Runs a recipe step by step; it can be saved and resumed.

    Where torch.distributed is initialised the processes share each step's pairs and average their gradients.
    """

    def __init__(self, model: SpanModel, recipe: Recipe) -> None:
        self.model = model
        self.step = 0
        self._recipe = recipe
        self._trained = [weight for weight in model.parameters() if weight.requires_grad]
        upper = [weight for weight in model.encoder.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": upper, "peak": recipe.learning_rate},
                {"params": list(model.head.parameters()), "peak": recipe.head_learning_rate},
            ],
            weight_decay=recipe.weight_decay,
        )

    def run(self, batches: Iterator[Sequence[Target]]) -> Iterator[float]:
        """Runs the remaining steps and yields the loss of this process's share of each batch."""
        self.model.train()
        while self.step < self._recipe.steps:
            for group in self._optimizer.param_groups:
                group["lr"] = group["peak"] * rate(self.step, self._recipe)
            loss = loss_of(self.model, next(batches)[worker() :: workers()])
            loss.backward()  # type: ignore[no-untyped-call]
            self._average()
            torch.nn.utils.clip_grad_norm_(self._trained, self._recipe.clip)
            self._optimizer.step()
            self._optimizer.zero_grad()
            self.step += 1
            yield float(loss.detach())

    def _average(self) -> None:
        if workers() == 1:
            return
        flat = torch.cat([weight.grad.flatten() for weight in self._trained if weight.grad is not None])
        torch.distributed.all_reduce(flat)
        at = 0
        for weight in self._trained:
            assert weight.grad is not None, "every trained weight takes part in every answer"
            weight.grad.copy_(flat[at : at + weight.numel()].view_as(weight) / workers())
            at += weight.numel()

    def save_state(self, file: Path) -> None:
        """Saves the state for `load_state` atomically."""
        state = {
            "weights": trained_weights(self.model),
            "optimizer": self._optimizer.state_dict(),
            "step": self.step,
        }
        new = file.with_suffix(".new")
        torch.save(state, new)
        new.replace(file)

    def load_state(self, file: Path) -> None:
        """Resumes from the state that `save_state` wrote."""
        state = torch.load(file, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["weights"], strict=False)
        self._optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])


def trained_weights(model: SpanModel) -> dict[str, Tensor]:
    """The trained parameters by name."""
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


def rate(step: int, recipe: Recipe) -> float:
    """The learning rate as a share of the peak: linear warm-up, then linear decay to 0."""
    warm = max(1, round(recipe.steps * recipe.warmup))
    return min((step + 1) / warm, (recipe.steps - step) / max(1, recipe.steps - warm))
