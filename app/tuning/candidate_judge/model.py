"""The judge in training: frozen first layers of the generator, low-rank changes to their products, and one score."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from app.tuning.candidate_judge.ballots import Ballot
from retrieval.branch_attention import IMPLEMENTATION, register
from retrieval.candidate_judge import first_layers
from retrieval.judge_layout import JUDGE_FILES, JudgeInput

LAYERS = 20
PRODUCTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class LowRank(nn.Module):
    """A frozen product with a trained change of low rank (Hu et al. 2021, arXiv:2106.09685).

    The change is kept in float32 and multiplied in the dtype of the frozen weight.
    """

    def __init__(self, product: nn.Linear, rank: int) -> None:
        super().__init__()
        self.product = product
        self.down = nn.Parameter(torch.empty(rank, product.in_features))
        self.up = nn.Parameter(torch.zeros(product.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, states: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        kind = states.dtype
        low = functional.linear(states, self.down.to(kind))
        return self.product(states) + functional.linear(low, self.up.to(kind))  # type: ignore[no-any-return]


class JudgeModel(nn.Module):
    """Scores the candidates of a layout."""

    def __init__(self, base: Any, *, rank: int) -> None:
        """`base` is a Llama model without its head."""
        super().__init__()
        self.base = base
        for weight in base.parameters():
            weight.requires_grad = False
        for layer in base.layers:
            for part in (layer.self_attn, layer.mlp):
                for name in PRODUCTS:
                    if hasattr(part, name):
                        setattr(part, name, LowRank(getattr(part, name), rank))
        self.head = nn.Linear(base.config.hidden_size, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    @classmethod
    def from_base(cls, folder: Path, *, rank: int, half: bool, layers: int = LAYERS) -> "JudgeModel":
        """The judge before its first step, of the generator in `folder`; its frozen weights in bfloat16 with `half`."""
        register()
        dtype = torch.bfloat16 if half else torch.float32
        return cls(first_layers(folder, layers, dtype=dtype, attention=IMPLEMENTATION), rank=rank)

    def trained(self) -> dict[str, nn.Parameter]:
        """What trains, by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def go_on_from(self, folder: Path) -> None:
        """Replace the weights that train by those of the judge in `folder`, as it ships.

        Raises:
            ValueError: It changes other products, or by another rank.
            OSError: The folder cannot be read.
        """
        learnt = load_file(folder / JUDGE_FILES[0])
        own = {name.removeprefix("base."): weight for name, weight in self.trained().items()}
        if {name: weight.shape for name, weight in learnt.items()} != {
            name: weight.shape for name, weight in own.items()
        }:
            raise ValueError(f"{folder}: this judge has other weights than the one that trains")
        with torch.no_grad():
            for name, weight in own.items():
                weight.copy_(learnt[name])

    def forward(self, layout: JudgeInput) -> Tensor:
        """(candidates,) scores in float32: log-odds that each is right."""
        device = self.head.weight.device
        states = self.base(
            input_ids=torch.tensor([layout.ids], device=device),
            position_ids=torch.tensor([layout.positions], device=device),
            attention_mask=None,
            use_cache=False,
            pack=layout,
        ).last_hidden_state[0]
        found: Tensor = self.head(states[layout.ends].float())
        return found[:, 0]


def loss_of(scores: Tensor, right: Sequence[bool]) -> Tensor:
    """Cross entropy over the candidates and "none", whose score is 0, and that of each candidate alone."""
    chosen = torch.tensor(right, device=scores.device)
    everything = torch.cat([scores.new_zeros(1), scores])
    wanted = torch.cat([~chosen.any()[None], chosen])
    among = everything.logsumexp(0) - everything[wanted].logsumexp(0)
    alone = functional.binary_cross_entropy_with_logits(scores, chosen.float())
    return among + alone


def told(scores: Tensor, ballot: Ballot) -> bool:
    """Whether the likeliest of the candidates and "none" is right."""
    best = int(scores.argmax())
    return ballot.right[best] if float(scores[best]) > 0 else not any(ballot.right)
