"""Low-rank adaptation of the generator (Hu et al. 2021, arXiv:2106.09685), by peft, over packs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from app.tuning.adapter.pack import Pack
from app.tuning.processes import add_up, worker, workers
from retrieval.branch_attention import IMPLEMENTATION, register

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All hyperparameters. Each step uses `packs` packs."""

    rank: int = 32
    first_layer: int = 6
    packs: int = 2
    steps: int = 60
    learning_rate: float = 1e-3
    warmup: float = 0.04
    weight_decay: float = 0.0
    clip: float = 1.0
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Reading:
    """The prediction of a pack's answers by teacher forcing.

    `loss` is the mean over answer tokens; `right` says of each branch whether every token is the most likely one.
    """

    loss: Tensor
    right: tuple[bool, ...]
    first: tuple[int, ...]


def start(base: Path, recipe: Recipe) -> Any:
    """The base model with a fresh adapter on every projection of its upper layers, in float32."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    register()
    torch.manual_seed(recipe.seed)
    model = AutoModelForCausalLM.from_pretrained(
        str(base), dtype=torch.float32, attn_implementation=IMPLEMENTATION, local_files_only=True
    )
    layers = range(recipe.first_layer, model.config.num_hidden_layers)
    return get_peft_model(
        model,
        LoraConfig(
            r=recipe.rank,
            lora_alpha=recipe.rank,
            target_modules=list(PROJECTIONS),
            layers_to_transform=list(layers),
            lora_dropout=0.0,
            task_type="CAUSAL_LM",
        ),
    )


def read(model: Any, pack: Pack) -> Reading:
    """One forward pass over a pack."""
    inner = model.get_base_model()
    device = next(inner.parameters()).device
    ids = pack.ids.to(device)
    states = inner.model(
        input_ids=ids[None],
        position_ids=pack.positions.to(device)[None],
        attention_mask=None,
        use_cache=False,
        pack=pack,
    ).last_hidden_state[0]
    targets = pack.targets.to(device)
    logits = inner.lm_head(states[targets - 1])
    wanted = ids[targets]
    loss = torch.nn.functional.cross_entropy(logits, wanted)
    best = logits.argmax(-1)
    right, first, at = [], [], 0
    for branch in pack.branches:
        end = at + len(branch.answer)
        right.append(bool((best[at:end] == wanted[at:end]).all()))
        first.append(int(best[at]))
        at = end
    return Reading(loss, tuple(right), tuple(first))


class Trainer:
    """Runs a recipe step by step; it can be saved and resumed with the same result.

    Where torch.distributed is initialised, the processes share each step's packs and add their gradients up:
    the step is the one a single process would take, up to rounding.
    """

    def __init__(self, model: Any, recipe: Recipe) -> None:
        if recipe.packs < workers():
            raise ValueError(
                f"{workers()} processes share at least as many packs a step, the recipe has {recipe.packs}"
            )
        self.model = model
        self.step = 0
        self._recipe = recipe
        self._trained = [weight for weight in model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, betas=(0.9, 0.99)
        )

    def run(self, packs: Sequence[Pack]) -> Iterator[Reading]:
        """Runs the remaining steps and yields this process's reading of each. Packs repeat in order."""
        self.model.train()
        while self.step < self._recipe.steps:
            first = self.step * self._recipe.packs
            mine = range(first + worker(), first + self._recipe.packs, workers())
            for group in self._optimizer.param_groups:
                group["lr"] = self._recipe.learning_rate * rate(self.step, self._recipe)
            found = [self._learn(packs[number % len(packs)]) for number in mine]
            add_up(self._trained)
            torch.nn.utils.clip_grad_norm_(self._trained, self._recipe.clip)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self.step += 1
            yield Reading(
                torch.stack([reading.loss for reading in found]).mean(),
                tuple(right for reading in found for right in reading.right),
                tuple(token for reading in found for token in reading.first),
            )

    def _learn(self, pack: Pack) -> Reading:
        """Runs a pack forward and backward and accumulates its share of the gradients."""
        found = read(self.model, pack)
        (found.loss / self._recipe.packs).backward()  # type: ignore[no-untyped-call]
        return Reading(found.loss.detach(), found.right, found.first)

    def save_state(self, file: Path) -> None:
        """Saves the state for `load_state` atomically."""
        from peft import get_peft_model_state_dict

        state = {
            "adapter": get_peft_model_state_dict(self.model),
            "optimizer": self._optimizer.state_dict(),
            "step": self.step,
        }
        new = file.with_suffix(".new")
        torch.save(state, new)
        new.replace(file)

    def load_state(self, file: Path) -> None:
        """Resumes from the state that `save_state` wrote."""
        from peft import set_peft_model_state_dict

        state = torch.load(file, map_location="cpu", weights_only=True)
        set_peft_model_state_dict(self.model, state["adapter"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])


def rate(step: int, recipe: Recipe) -> float:
    """The learning rate as a share of the peak: linear warm-up, then cosine decay to 1/20."""
    warm = max(1, round(recipe.steps * recipe.warmup))
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, recipe.steps - warm)
    return 0.05 + 0.95 * (1 + math.cos(math.pi * done)) / 2


def save(model: Any, folder: Path, *, base: str) -> None:
    """The adapter of the model called `base` in half precision, as peft writes it: safetensors and configuration."""
    from safetensors.torch import load_file, save_file

    model.peft_config["default"].base_model_name_or_path = base  # not a folder of this machine
    model.save_pretrained(str(folder), save_embedding_layers=False)  # else it asks the network about the base
    file = folder / "adapter_model.safetensors"
    save_file(
        {name: tensor.to(torch.float16) for name, tensor in load_file(file).items()}, file, metadata={"format": "pt"}
    )
