"""Decoder layers of fewer operations, in place of transformers' own, for families that are built alike.

A layer of Llama as transformers has it launches forty kernels on a GPU when it decodes, most of them for a few numbers.
Here the norms are torch's, positions are applied where keys and values are stored, and the siblings of
`generation.linear` are one product. Parameters stay the same objects.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from generation.attention import Batch, Rotation

logger = logging.getLogger("footnote.generation")

_FAMILIES = ("Llama", "Mistral", "Qwen2", "Qwen3")
_ATTENTIONS = {f"{family}Attention" for family in _FAMILIES}
_MLPS = {f"{family}MLP" for family in _FAMILIES}
_NORMS = {f"{family}RMSNorm" for family in (*_FAMILIES, "Phi3")}
_SILU = {"SiLU", "SiLUActivation"}


class FusedNorm(nn.Module):
    """RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467) as torch has it, rounded once."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight = norm.weight
        self.eps = float(norm.variance_epsilon)

    def forward(self, x: Tensor) -> Tensor:
        """[..., width] to the same."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


class FusedAttention(nn.Module):
    """Attention over a `Batch`, which applies the positions."""

    q_proj: nn.Module
    k_proj: nn.Module
    v_proj: nn.Module
    o_proj: nn.Module

    def __init__(self, attention: Any, *, window: int | None) -> None:
        super().__init__()
        self.layer_idx: int = attention.layer_idx
        self._head_dim: int = attention.head_dim
        self._scaling: float = attention.scaling
        self._window = window
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, getattr(attention, name))
        self.q_norm: FusedNorm | None = None
        self.k_norm: FusedNorm | None = None
        if hasattr(attention, "q_norm"):
            self.q_norm, self.k_norm = FusedNorm(attention.q_norm), FusedNorm(attention.k_norm)

    def forward(
        self, hidden_states: Tensor, *, position_embeddings: tuple[Tensor, Tensor], ragged_batch: Batch, **_: Any
    ) -> tuple[Tensor, None]:
        """[1, T, width] to the same, and no weights; arguments as the layers of transformers give them."""
        shape = (*hidden_states.shape[:-1], -1, self._head_dim)
        query, key, value = (
            project(hidden_states).view(shape).transpose(1, 2) for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        cos, sin = position_embeddings
        rotation = Rotation(cos, sin)
        if self.q_norm is not None and self.k_norm is not None:
            rotation = Rotation(cos, sin, self.q_norm.weight, self.k_norm.weight, self.q_norm.eps)
        out = ragged_batch.attend(
            self.layer_idx,
            query,
            key,
            value,
            scaling=self._scaling,
            window=self._window,
            softcap=None,
            rotation=rotation,
        )
        return self.o_proj(out.reshape(*hidden_states.shape[:-1], -1)), None


class FusedMLP(nn.Module):
    """SiLU(gate) · up, down (SwiGLU, Shazeer 2020, arXiv:2002.05202)."""

    gate_proj: nn.Module
    up_proj: nn.Module
    down_proj: nn.Module

    def __init__(self, mlp: Any) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = mlp.gate_proj, mlp.up_proj, mlp.down_proj

    def forward(self, x: Tensor) -> Tensor:
        """[..., width] to the same."""
        gated = functional.silu(self.gate_proj(x))
        down: Tensor = self.down_proj(gated.mul_(self.up_proj(x)))
        return down


def fuse(model: nn.Module, *, probe: Callable[[], object], tolerance: float) -> int:
    """Replace the modules of `model`'s layers, in place, if each of them computes the same as before.

    Each is compared by itself, at the input that the original gets in the probe: the rounding of bfloat16, grown
    over thirty layers, would hide a mistake in one.

    Args:
        model: In evaluation mode, its attention already `generation.attention`'s.
        probe: Has the model compute some tokens.
        tolerance: Of the norm of a module's output.

    Returns:
        How many modules were replaced: 0 for other families, and where a result differs.
    """
    replacements = list(_replacements(model))
    if not replacements:
        return 0
    seen: dict[nn.Module, tuple[tuple[Any, ...], dict[str, Any], Any]] = {}

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        seen[module] = (args, kwargs, output)

    handles = [original.register_forward_hook(note, with_kwargs=True) for _, _, original, _ in replacements]
    try:
        probe()
    finally:
        for handle in handles:
            handle.remove()
    for _, name, original, new in replacements:
        if original not in seen or not _same(new, *seen[original], tolerance=tolerance):
            logger.warning("%s computes something else when fused; the model's own layers are used", name)
            return 0
    for parent, name, _, new in replacements:
        setattr(parent, name, new)
    return len(replacements)


@torch.inference_mode()
def _same(new: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, *, tolerance: float) -> bool:
    """Whether `new` gives `output`, a tensor or a tuple that begins with one, for these arguments."""
    try:
        got = new(*args, **kwargs)
    except (RuntimeError, TypeError, AttributeError, NotImplementedError):
        logger.exception("a fused layer does not run")
        return False
    got, expected = (one[0] if isinstance(one, tuple) else one for one in (got, output))
    return bool((got.float() - expected.float()).norm() <= tolerance * expected.float().norm())  # also refuses NaN


def _replacements(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module, nn.Module]]:
    """Parent, name, original and replacement of each module that can be replaced."""
    for parent in list(model.modules()):
        for name, module in parent.named_children():
            new: nn.Module | None = None
            kind, any_module = type(module).__name__, cast(Any, module)
            if kind in _NORMS:
                new = FusedNorm(any_module)
            elif kind in _ATTENTIONS:
                new = FusedAttention(any_module, window=_window(any_module))
            elif kind in _MLPS and type(any_module.act_fn).__name__ in _SILU:
                new = FusedMLP(any_module)
            if new is not None:
                yield parent, name, module, new.eval()


def _window(attention: Any) -> int | None:
    """How many last tokens the layer attends to, as its own forward pass says; None is all."""
    if type(attention).__name__ == "LlamaAttention":
        return None
    window: int | None = getattr(attention, "sliding_window", None)
    if type(attention).__name__ == "MistralAttention":
        window = getattr(attention.config, "sliding_window", None)
    return window
