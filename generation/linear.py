"""Linear layers packed for the processor: fewer bytes per weight and fewer, larger matrix products.

A decode step on a CPU reads every weight once and computes little, so bytes are time. Checkpoints mostly
hold bfloat16 numbers; run as float32 on a processor without bfloat16 instructions, half of every weight
is zeros. `prepare_linears` stores such weights as float16, which loses nothing, and multiplies in float32
(FBGEMM, Khudia et al. 2021, arXiv:2101.05615). A row's result is then the same bits whatever other rows
are in the batch, which a plain float32 product does not guarantee. Without AVX-512, FBGEMM sums the last one or
two rows of a batch in another order, so such a batch is multiplied with one or two rows of zeros behind it.

bfloat16 products are oneDNN's, which has a layout of its own for weights. Plain layers may bring them into it at every
call, in more time than a product of few rows takes; where that is so here, by measurement, it is done once.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from generation.blocked_attention import fastest

# Layers of one parent that read the same input, by the names transformers' models share.
SIBLINGS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
_ROWS_AT_ONCE = 6  # of FBGEMM's widest kernel for AVX2; those for one and two rows round otherwise
# Per output channel, ‖half(w) - w‖ / ‖w‖ up to which half precision counts as the same weight. Float32
# products of the same numbers in another order differ by more.
LOSSLESS = 1e-7
# Rows of the products by which layouts of bfloat16 weights are compared: of a stream that decodes, and of a prompt.
_TRIAL_ROWS = (1, 64)
_ROUNDS = 10
_FASTER, _NOT_SLOWER = 0.9, 1.05


class Product(nn.Module):
    """y = x Wᵀ + b with weights packed once; drops in for `nn.Linear` in inference.

    `weight_bytes` is the size of the packed weights, which are no parameter and no part of a state dict.
    """

    in_features: int
    out_features: int
    weight_bytes: int

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], in the format of `x`."""
        raise NotImplementedError


class HalfProduct(Product):
    """Weights in float16, activations and sums in float32. Rows do not depend on each other, to the bit."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight_bytes = 2 * weight.numel()
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.float().contiguous(), bias)
        self._narrow = torch.backends.cpu.get_cpu_capability() != "AVX512"

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], in the format of `x`."""
        rows = x.float().reshape(-1, self.in_features)
        if (added := self._added_rows(len(rows))) > 0:
            rows = functional.pad(rows, (0, 0, 0, added))
        y: Tensor = torch.ops.quantized.linear_dynamic_fp16(rows, self._packed)
        return y[: len(rows) - added].reshape(*x.shape[:-1], self.out_features).to(x.dtype)

    def _added_rows(self, rows: int) -> int:
        """How many rows of zeros make FBGEMM sum every row in the same order."""
        left = rows % _ROWS_AT_ONCE
        return 3 - left if self._narrow and left in {1, 2} else 0


class PlainProduct(Product):
    """As `nn.Linear` multiplies; for siblings in one."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight_bytes = weight.numel() * weight.itemsize
        self._weight, self._bias = weight, bias

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], in the format of `x`."""
        return functional.linear(x, self._weight, self._bias)


class LaidOutProduct(Product):
    """Weights in bfloat16 in oneDNN's layout, sums in float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight_bytes = weight.numel() * weight.itemsize
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())  # noqa: SLF001 - inductor's own
        self._bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], both bfloat16."""
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, self._bias, "none", [], "")  # noqa: SLF001
        return y


class Siblings(nn.Module):
    """One product for several layers that read the same input.

    The first layer called multiplies for all; the others find their columns. Which input the columns
    belong to is told by identity, so a layer that is given another one multiplies again and is right.
    """

    def __init__(self, product: Product, *, parts: int) -> None:
        super().__init__()
        self.product = product
        self._parts = parts
        self._found: tuple[Tensor, Tensor, int] | None = None  # input, output, columns not yet fetched

    def forward(self, x: Tensor, start: int, stop: int) -> Tensor:
        """Columns `start` to `stop` of the product with `x`, a view."""
        found = self._found  # read once: another thread may replace it
        y, left = (found[1], found[2]) if found is not None and found[0] is x else (self.product(x), self._parts)
        self._found = (x, y, left - 1) if left > 1 else None
        return y[..., start:stop]


class Sibling(nn.Module):
    """A layer whose columns are part of a product shared with other layers."""

    def __init__(self, siblings: Siblings, *, start: int, stop: int) -> None:
        super().__init__()
        self.siblings = siblings
        self.in_features, self.out_features = siblings.product.in_features, stop - start
        self._start, self._stop = start, stop

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], in the format of `x`."""
        y: Tensor = self.siblings(x, self._start, self._stop)
        return y


def prepare_linears(model: nn.Module) -> int:
    """Replace `nn.Linear` layers on the CPU, in place, by equal ones that run faster.

    bfloat16 weights are laid out for oneDNN where that is faster here. Float32 weights that float16 holds without loss
    are packed as float16 (an output channel's weights move by at most 1e-7 of their norm). Of both, siblings are one
    product. The others are only stored input-major in
    memory, which multiplies faster for a few rows; tied to an embedding they are not touched.
    Sums run in another order than before: results agree to about 1e-6, in bfloat16 to its rounding, not to the bit.

    Returns:
        How many layers were replaced or laid out anew: 0 on a GPU and for other formats.
    """
    if lays_out(model):
        return replace_linears(model, LaidOutProduct, where=_is_bfloat16)
    tied = embedding_weights(model)
    packed = replace_linears(model, HalfProduct, where=_fits_half) if packs() else 0
    for layer in [module for module in model.modules() if type(module) is nn.Linear]:
        if _is_plain(layer) and layer.weight.data_ptr() not in tied:
            # through .data: the parameter object stays, so ties between linear layers hold
            layer.weight.data = layer.weight.data.t().contiguous().t()
            packed += 1
    return packed


def join_linears(model: nn.Module) -> int:
    """Multiply siblings by one product each, for a GPU: fewer launches, and wider products.

    The others keep their weights where they are. Of the siblings one group at a time is in memory twice.

    Returns:
        How many layers were replaced.
    """
    return replace_linears(model, PlainProduct, where=lambda _: True, alone=False)


def packs() -> bool:
    """Whether this processor and this build of torch have FBGEMM's products (x86 with AVX2)."""
    return "fbgemm" in torch.backends.quantized.supported_engines and hasattr(
        torch.ops.quantized, "linear_dynamic_fp16"
    )


def lays_out(model: nn.Module) -> bool:
    """Whether products of `model`'s bfloat16 weights are faster here in oneDNN's layout: measured on one layer.

    It is the one of median size. Products of one row must take at most nine tenths of the time, those of a prompt
    hardly more than before.
    """
    layers = [module for module in model.modules() if type(module) is nn.Linear and _is_bfloat16(module)]
    ops = torch.ops.mkldnn
    if not layers or not hasattr(ops, "_reorder_linear_weight"):  # a build without oneDNN
        return False
    if not ops._is_mkldnn_bf16_supported():  # noqa: SLF001 - torch has no public name for it
        return False
    weight = sorted((layer.weight.detach() for layer in layers), key=torch.numel)[len(layers) // 2]
    laid_out = LaidOutProduct(weight, None)
    ratios: list[float] = []
    for rows in _TRIAL_ROWS:
        x = torch.ones(rows, weight.shape[1], dtype=torch.bfloat16)
        before, after = fastest([partial(functional.linear, x, weight), partial(laid_out, x)], rounds=_ROUNDS)
        ratios.append(after / before)
    return ratios[0] <= _FASTER and ratios[-1] <= _NOT_SLOWER


def replace_linears(
    model: nn.Module,
    pack: Callable[[Tensor, Tensor | None], Product],
    *,
    where: Callable[[nn.Linear], bool],
    alone: bool = True,
) -> int:
    """Put `pack(weight, bias)` in the place of each `nn.Linear` that satisfies `where`; returns how many.

    Without `alone`, only in the place of siblings.

    An original's memory is free as soon as it is replaced, unless an embedding still uses it.
    Subclasses of `nn.Linear` are left alone: they mean something else.
    """
    groups = [(parent, group) for parent in list(model.modules()) for group in _groups(parent, where)]
    groups = [(parent, group) for parent, group in groups if alone or len(group) > 1]
    replaced = 0
    # Packing is one thread's work inside torch, which lets go of the interpreter meanwhile.
    with ThreadPoolExecutor(max(1, torch.get_num_threads())) as threads:
        packed = threads.map(lambda place: _pack(list(place[1].values()), pack), groups)
        for (parent, group), replacements in zip(groups, packed, strict=True):
            for name, replacement in zip(group, replacements, strict=True):
                setattr(parent, name, replacement.eval())
            replaced += len(group)
            group.clear()  # no other reference to the originals exists
    return replaced


def embedding_weights(model: nn.Module) -> frozenset[int]:
    """Addresses of the memory that the model's embeddings read."""
    return frozenset(module.weight.data_ptr() for module in model.modules() if isinstance(module, nn.Embedding))


def _groups(parent: nn.Module, where: Callable[[nn.Linear], bool]) -> Iterator[dict[str, nn.Linear]]:
    """`parent`'s own layers to be replaced, by name, siblings together."""
    layers = {name: layer for name, layer in parent.named_children() if type(layer) is nn.Linear and where(layer)}
    for names in SIBLINGS:
        if all(name in layers for name in names) and len({layers[name].in_features for name in names}) == 1:
            yield {name: layers.pop(name) for name in names}
    while layers:
        yield dict([layers.popitem()])


def _pack(layers: Sequence[nn.Linear], pack: Callable[[Tensor, Tensor | None], Product]) -> list[nn.Module]:
    """The replacements of `layers`: one product each, or one that all share."""
    if len(layers) == 1:
        return [pack(layers[0].weight.detach(), _joint_bias(layers))]
    packed = pack(torch.cat([layer.weight.detach() for layer in layers]), _joint_bias(layers))
    siblings = Siblings(packed, parts=len(layers))
    modules: list[nn.Module] = []
    start = 0
    for layer in layers:
        modules.append(Sibling(siblings, start=start, stop=start + layer.out_features))
        start += layer.out_features
    return modules


def _joint_bias(layers: Sequence[nn.Linear]) -> Tensor | None:
    """The layers' biases in a row, zeros for a layer without; None if no layer has one."""
    biases: list[Tensor | None] = [layer.bias for layer in layers]
    if all(bias is None for bias in biases):
        return None
    zeros = [layer.weight.new_zeros(layer.out_features) for layer in layers]
    return torch.cat([zero if bias is None else bias.detach() for bias, zero in zip(biases, zeros, strict=True)])


def _is_plain(layer: nn.Linear) -> bool:
    return layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32


def _is_bfloat16(layer: nn.Linear) -> bool:
    return layer.weight.device.type == "cpu" and layer.weight.dtype == torch.bfloat16


def _fits_half(layer: nn.Linear) -> bool:
    if not _is_plain(layer):
        return False
    weight = layer.weight.detach()
    error = (weight.half().float() - weight).norm(dim=1)
    return bool((error <= LOSSLESS * weight.norm(dim=1)).all())  # also refuses infinities and NaN
