"""Decoder layers of fewer operations, in place of transformers' own, for families that are built alike.

A layer of Llama as transformers has it launches forty kernels on a GPU when it decodes, most of them for a few numbers.
Here a norm is one kernel, positions are applied where keys and values are stored, and the siblings of
`generation.linear` are one product. Norms and gates are torch's, on a GPU those of `generation.triton_layers`.
Parameters stay the same objects.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from generation.accelerator import missing_compiler
from generation.attention import Batch, HeadRotation

logger = logging.getLogger("footnote.generation")

_FAMILIES = ("Llama", "Mistral", "Qwen2", "Qwen3")
_ATTENTIONS = {f"{family}Attention" for family in _FAMILIES}
_MLPS = {f"{family}MLP" for family in _FAMILIES}
_NORMS = {f"{family}RMSNorm" for family in (*_FAMILIES, "Phi3")}
_LAYERS = {f"{family}DecoderLayer" for family in _FAMILIES}
_SILU = {"SiLU", "SiLUActivation"}

# What travels between fused layers: the residual stream, or two summands of it.
Stream = Tensor | tuple[Tensor, Tensor]


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional.rms_norm(x, weight.shape, weight, eps)


def _add_rms_norm(x: Tensor, added: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    total = x + added
    return total, _rms_norm(total, weight, eps)


def _gated(gate: Tensor, up: Tensor) -> Tensor:
    return functional.silu(gate).mul_(up)


@dataclass(frozen=True, slots=True)
class LayerKernels:
    """What computes a layer's norms and gates: torch, unless something else is given.

    Attributes:
        rms_norm: RMSNorm of [..., width] by a weight, [width], and an epsilon.
        add_rms_norm: The sum of two [..., width], and its RMSNorm.
        gated: SiLU of the first of two [..., width], times the second.
    """

    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = _rms_norm
    add_rms_norm: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]] = _add_rms_norm
    gated: Callable[[Tensor, Tensor], Tensor] = _gated


TORCH = LayerKernels()


class FusedNorm(nn.Module):
    """RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467), rounded once."""

    def __init__(self, norm: Any, kernels: LayerKernels = TORCH) -> None:
        super().__init__()
        self.weight = norm.weight
        self.eps = float(norm.variance_epsilon)
        self._kernels = kernels

    def forward(self, x: Stream) -> Tensor:
        """[..., width] to the same."""
        return self.added(x)[1]

    def added(self, x: Stream) -> tuple[Tensor, Tensor]:
        """The stream as one [..., width], and its norm."""
        if isinstance(x, tuple):
            return self._kernels.add_rms_norm(*x, self.weight, self.eps)
        return x, self._kernels.rms_norm(x, self.weight, self.eps)


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
        rotation = HeadRotation(cos, sin)
        if self.q_norm is not None and self.k_norm is not None:
            rotation = HeadRotation(cos, sin, self.q_norm.weight, self.k_norm.weight, self.q_norm.eps)
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

    def __init__(self, mlp: Any, kernels: LayerKernels = TORCH) -> None:
        super().__init__()
        self._kernels = kernels
        self.gate_proj, self.up_proj, self.down_proj = mlp.gate_proj, mlp.up_proj, mlp.down_proj

    def forward(self, x: Tensor) -> Tensor:
        """[..., width] to the same."""
        down: Tensor = self.down_proj(self._kernels.gated(self.gate_proj(x), self.up_proj(x)))
        return down


class FusedLayer(nn.Module):
    """A decoder layer that leaves each sum to the norm behind it, which may be the next layer's."""

    input_layernorm: FusedNorm
    self_attn: FusedAttention
    post_attention_layernorm: FusedNorm
    mlp: FusedMLP

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        for name, module in layer.named_children():
            self.add_module(name, module)

    def forward(self, hidden_states: Stream, **arguments: Any) -> tuple[Tensor, Tensor]:
        """[1, T, width] to two summands of the same; arguments as `FusedAttention`'s."""
        stream, normed = self.input_layernorm.added(hidden_states)
        attended, _ = self.self_attn(normed, **arguments)
        stream, normed = self.post_attention_layernorm.added((stream, attended))
        return stream, self.mlp(normed)


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
    own = _own_kernels(model)
    if own is not None and (replaced := _fused(model, own, probe=probe, tolerance=tolerance)):
        return replaced
    return _fused(model, TORCH, probe=probe, tolerance=tolerance)


def _own_kernels(model: nn.Module) -> LayerKernels | None:
    """Those of Triton for a model on a GPU; None elsewhere, and where they cannot be compiled."""
    if next(model.parameters()).device.type != "cuda" or missing_compiler() is not None:
        return None
    try:
        from generation import triton_layers
    except ImportError:
        return None
    return LayerKernels(triton_layers.rms_norm, triton_layers.add_rms_norm, triton_layers.gated)


def _fused(model: nn.Module, kernels: LayerKernels, *, probe: Callable[[], object], tolerance: float) -> int:
    """`fuse` with these kernels."""
    replaced = _replace(list(_replacements(model, kernels)), probe=probe, tolerance=tolerance, kernels=kernels)
    if replaced:
        replaced += _replace(_whole_layers(model), probe=probe, tolerance=tolerance, kernels=kernels)
    return replaced


Replacement = tuple[nn.Module, str, nn.Module, nn.Module]  # parent, name, original and what replaces it


def _replace(
    replacements: Sequence[Replacement],
    *,
    probe: Callable[[], object],
    tolerance: float,
    kernels: LayerKernels,
) -> int:
    """Put the replacements in place if each of them computes the same as its original; returns how many."""
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
            instead = "the model's own layers are" if kernels is TORCH else "torch's kernels are"
            logger.warning("%s computes something else when fused; %s used", name, instead)
            return 0
    for parent, name, _, new in replacements:
        setattr(parent, name, new)
    return len(replacements)


@torch.inference_mode()
def _same(new: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, *, tolerance: float) -> bool:
    """Whether `new` gives `output`, a tensor or a tuple that begins with one, for these arguments.

    Two tensors in place of one are its summands.
    """
    try:
        got = new(*args, **kwargs)
    except Exception:  # Triton's compiler has errors of its own
        logger.exception("a fused layer does not run")
        return False
    expected = output[0] if isinstance(output, tuple) else output
    if isinstance(got, tuple):
        got = got[0] if isinstance(output, tuple) else got[0] + got[1]
    return bool((got.float() - expected.float()).norm() <= tolerance * expected.float().norm())  # also refuses NaN


def _whole_layers(model: nn.Module) -> list[Replacement]:
    """Every layer, where all are fused inside and a fused norm is behind the last."""
    for parent in model.modules():
        layers = getattr(parent, "layers", None)
        if not isinstance(layers, nn.ModuleList) or not isinstance(getattr(parent, "norm", None), FusedNorm):
            continue
        if all(_is_fused_inside(layer) for layer in layers):
            return [(layers, name, layer, FusedLayer(layer).eval()) for name, layer in layers.named_children()]
    return []


def _is_fused_inside(layer: nn.Module) -> bool:
    parts = {name: type(part) for name, part in layer.named_children()}
    norms = {"input_layernorm": FusedNorm, "post_attention_layernorm": FusedNorm}
    return type(layer).__name__ in _LAYERS and parts == {"self_attn": FusedAttention, "mlp": FusedMLP, **norms}


def _replacements(model: nn.Module, kernels: LayerKernels) -> Iterator[Replacement]:
    """Parent, name, original and replacement of each module that can be replaced."""
    for parent in list(model.modules()):
        for name, module in parent.named_children():
            new: nn.Module | None = None
            kind, any_module = type(module).__name__, cast(Any, module)
            if kind in _NORMS:
                new = FusedNorm(any_module, kernels)
            elif kind in _ATTENTIONS:
                new = FusedAttention(any_module, window=_window(any_module))
            elif kind in _MLPS and type(any_module.act_fn).__name__ in _SILU:
                new = FusedMLP(any_module, kernels)
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
