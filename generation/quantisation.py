"""Weights in eight bits on a CPU, in four on a GPU: less memory and faster products, at some cost in quality.

On a CPU the weights get one symmetric scale per output channel, the activations one per row, computed as
they come (the vector-wise scheme of LLM.int8, Dettmers et al. 2022, arXiv:2208.07339, without its float
columns). Sums are exact integers, so a row's result is the same bits whatever other rows are in the batch;
one scale for the whole batch, as torch's own dynamic quantisation has, would let sequences change each other.
"""

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from generation.errors import ModelUnavailable
from generation.linear import Product, replace_linears

_LEVELS = 127  # symmetric: -127 to 127
_TINY = 1e-30  # the divisor of a row of zeros


class Int8Product(Product):
    """Weights in int8 per output channel, activations in int8 per row, sums in int32, results in float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        quantised, self._scales = _quantise_rows(weight.float())
        # [in, out], input fastest; but torch misreads a column that was merely transposed (in_features of 1)
        self._weight = (
            quantised.t() if self.in_features > 1 else quantised.t().clone(memory_format=torch.contiguous_format)
        )
        self._bias = None if bias is None else bias.float()
        self.weight_bytes = self._weight.nbytes + self._scales.nbytes

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], in the format of `x`; a NaN spoils its own row only."""
        rows, scales = _quantise_rows(x.float().reshape(-1, self.in_features))
        sums = torch._int_mm(rows, self._weight)  # noqa: SLF001 - torch has no public product of int8 matrices
        y = (sums * scales[:, None]).mul_(self._scales)
        if self._bias is not None:
            y.add_(self._bias)
        return y.to(x.dtype).reshape(*x.shape[:-1], self.out_features)


def quantise(model: nn.Module, weights: Literal["int8", "int4"]) -> None:
    """Quantise every `nn.Linear` of `model` in place, the output layer included; embeddings and norms stay.

    Call it on the model's device, instead of `prepare_linears`. On CUDA the work is torchao's: int4 weights in
    groups of 128 with bfloat16 activations.

    Raises:
        ModelUnavailable: see `check_device`; or torchao is not installed, or the model has no layer to quantise.
    """
    device = next(model.parameters()).device
    check_device(device, weights)
    if device.type == "cuda":
        _quantise_to_int4_on_cuda(model)
        return
    if not replace_linears(model, Int8Product, where=lambda _: True):
        raise ModelUnavailable("The model has no linear layers to quantise.")


def check_device(device: torch.device, weights: Literal["int8", "int4"]) -> None:
    """Refuse weights that a device has no fast kernels for.

    Raises:
        ModelUnavailable: it has none.
    """
    if device.type == "cuda":
        if weights == "int8":
            # torchao 0.18 prints a tensor in every product (kernel/intmm.py), which waits for the device and is refused
            # by CUDA graphs (pytorch/ao#4872), and transposes the weights anew for each.
            raise ModelUnavailable("8-bit weights are slower than native ones on a GPU; take native or 4-bit weights.")
        return
    if weights == "int4":
        raise ModelUnavailable("4-bit weights need a CUDA device: on a CPU they are slower than 8-bit ones.")
    # Without these instructions oneDNN's products are slow, and sums of two may saturate.
    with_vnni = torch.cpu._is_vnni_supported()  # noqa: SLF001 - torch 2.9 has no public name for it
    if device.type != "cpu" or not with_vnni:
        raise ModelUnavailable("8-bit weights need a processor with AVX512-VNNI.")


def gguf_file(path: str | Path) -> str | None:
    """Name of the GGUF file at `path`, or of the only weights in the folder `path`; else None.

    For transformers' `from_pretrained(folder, gguf_file=…, quantization_config=GgufConfig(dequantize=True))`,
    which multiplies the blocks out to plain weights.

    Raises:
        ModelUnavailable: the folder has several GGUF files, so the choice is ambiguous.
    """
    path = Path(path)
    if path.is_file():
        return path.name if path.suffix == ".gguf" else None
    if any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin")):
        return None
    files = sorted(file.name for file in path.glob("*.gguf"))
    if len(files) > 1:
        raise ModelUnavailable(f"The folder {path.name!r} holds {len(files)} GGUF files; leave one.")
    return files[0] if files else None


def _quantise_to_int4_on_cuda(model: nn.Module) -> None:
    try:
        from torchao.quantization import Int4WeightOnlyConfig, quantize_
    except ImportError as error:
        raise ModelUnavailable("Quantised weights on CUDA need the package torchao.") from error
    quantize_(model, Int4WeightOnlyConfig(group_size=128, int4_packing_format="tile_packed_to_4d"))


def _quantise_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """[n, k] float32 to [n, k] int8 and [n] scales: `rows` is about `int8 * scales[:, None]`."""
    scales = torch.linalg.vector_norm(rows, float("inf"), dim=1).clamp_min_(_TINY).div_(_LEVELS)
    return (rows / scales[:, None]).round_().to(torch.int8), scales
