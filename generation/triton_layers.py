"""Triton kernels of what lies between a layer's products: RMSNorm, and SiLU of the gate times the rest.

Where a step decodes, these work on a few numbers, and torch's own kernels take longer to begin than to compute: on an
H200 its RMSNorm of one row of 4,096 takes 5.9 microseconds, and of siblings of a joint product, which lie in strides,
SiLU and product take 10 for 64 rows. Import only where Triton is installed. A row's result depends on that row alone.
"""
# As in `generation.triton_kernels`: Triton's language has no types, and constants in capitals.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# ruff: noqa: N803

import triton
import triton.language as tl
from torch import Tensor, empty, empty_like

_GATED_AT_ONCE = 1024  # numbers of a row that a program takes


@triton.jit
def rms_norm_kernel(
    out,  # [rows, WIDTH]
    total,  # with ADD [rows, WIDTH]: x + added, whose norm `out` is
    x,  # [rows, WIDTH]
    added,  # with ADD [rows, WIDTH]
    weight,  # [WIDTH]
    eps,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    ADD: tl.constexpr,
):
    """One row per program; float32 until the end, but for the sum, which is rounded as torch rounds it."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, WIDTH_PADDED)
    present = places < WIDTH
    numbers = tl.load(x + row * WIDTH + places, mask=present, other=0.0).to(tl.float32)
    if ADD:
        numbers += tl.load(added + row * WIDTH + places, mask=present, other=0.0).to(tl.float32)
        rounded = numbers.to(total.dtype.element_ty)
        tl.store(total + row * WIDTH + places, rounded, mask=present)
        numbers = rounded.to(tl.float32)
    factor = tl.load(weight + places, mask=present, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(numbers * numbers, axis=0) / WIDTH + eps)
    tl.store(out + row * WIDTH + places, (numbers * scale * factor).to(out.dtype.element_ty), mask=present)


@triton.jit
def gated_kernel(
    out,  # [rows, WIDTH]
    gate,  # [rows, WIDTH], rows in strides
    up,
    gate_stride,
    up_stride,
    WIDTH: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """AT_ONCE numbers of a row per program; float32 until the end."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
    present = places < WIDTH
    opened = tl.load(gate + row * gate_stride + places, mask=present, other=0.0).to(tl.float32)
    carried = tl.load(up + row * up_stride + places, mask=present, other=0.0).to(tl.float32)
    result = opened * tl.sigmoid(opened) * carried
    tl.store(out + row * WIDTH + places, result.to(out.dtype.element_ty), mask=present)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467) of [..., width], rounded once; the same shape."""
    x = x.contiguous()
    out = empty_like(x)
    _launch_norm(out, None, x, None, weight, eps)
    return out


def add_rms_norm(x: Tensor, added: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The sum of two [..., width], and its `rms_norm`."""
    x, added = x.contiguous(), added.contiguous()
    out, total = empty_like(x), empty_like(x)
    _launch_norm(out, total, x, added, weight, eps)
    return total, out


def _launch_norm(
    out: Tensor, total: Tensor | None, x: Tensor, added: Tensor | None, weight: Tensor, eps: float
) -> None:
    width = x.shape[-1]
    padded = triton.next_power_of_2(width)
    rms_norm_kernel[(x.numel() // width,)](
        out,
        x if total is None else total,
        x,
        x if added is None else added,
        weight,
        eps,
        WIDTH=width,
        WIDTH_PADDED=padded,
        ADD=added is not None,
        num_warps=min(16, max(1, padded // 1024)),  # 32 numbers a thread
    )


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """SiLU(gate) · up of two [..., width], rounded once; contiguous, of the same shape.

    The last dimension is contiguous, and rows lie at equal distances.
    """
    width = gate.shape[-1]
    flat_gate, flat_up = _rows(gate), _rows(up)
    out = empty(gate.shape, dtype=gate.dtype, device=gate.device)
    grid = (flat_gate.shape[0], triton.cdiv(width, _GATED_AT_ONCE))
    gated_kernel[grid](
        out, flat_gate, flat_up, flat_gate.stride(0), flat_up.stride(0), WIDTH=width, AT_ONCE=_GATED_AT_ONCE
    )
    return out


def _rows(x: Tensor) -> Tensor:
    """[n, width] of [..., width], a view where it can be."""
    rows = x.flatten(0, -2)
    return rows if rows.stride(-1) == 1 else rows.contiguous()
