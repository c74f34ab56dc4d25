"""generation.triton_kernels, compiled for an H100 without one: memory of a program, and how it multiplies and loads.

Triton compiles for a named target, and has NVIDIA's assembler with it; neither needs a device. Heads are those of
Llama 3.1 8B in bfloat16.
"""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")

import triton

from generation import triton_attention, triton_layers
from generation.attention import HeadRotation
from generation.paged_cache import PagedTensors
from generation.paged_index import PagedIndex, PagedRow
from generation.triton_kernels import attend_kernel, reduce_kernel, rotate_and_store_kernel, store_kernel
from tests.generation.launches import Launches

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

pytestmark = [
    pytest.mark.skipif(not isinstance(attend_kernel, triton.JITFunction), reason="Triton interprets here"),
    pytest.mark.skipif(not (TOOLS / "cuobjdump").exists(), reason="this build of Triton has no assembler for NVIDIA"),
]

HEADS, KV_HEADS, HEAD_DIM, BLOCK_TOKENS = 32, 8, 128, 16
MOST_SHARED = 227 * 1024  # bytes that a program may have on an H100 (CUDA's programming guide, compute capability 9.0)
REGISTERS = 65_536  # of a multiprocessor


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Launches]:
    """The kernels' stand-ins; what they compile is compiled now, not found in a cache."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = {
        "store": Launches(store_kernel),
        "rotate_and_store": Launches(rotate_and_store_kernel),
        "attend": Launches(attend_kernel),
        "reduce": Launches(reduce_kernel),
    }
    for name, kernel in kernels.items():
        monkeypatch.setattr(triton_attention, f"{name}_kernel", kernel)
    monkeypatch.setattr(triton_attention, "_interpreted", lambda: False)  # nor are stand-ins JIT functions
    return kernels


def launch(queries: int, *, past: int, normed: bool = False) -> None:
    """One row of a step, stored as it is, then rotated."""
    tensors = PagedTensors(
        layers=1,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        blocks=64,
        block_tokens=BLOCK_TOKENS,
        dtype=torch.bfloat16,
        device=torch.device("cpu"),
    )
    index = PagedIndex(tensors, [PagedRow(0, queries, past, range(-(-(past + queries) // BLOCK_TOKENS)))])
    query, new = (
        torch.zeros(1, queries, heads, HEAD_DIM, dtype=torch.bfloat16).transpose(1, 2) for heads in (HEADS, KV_HEADS)
    )
    keys, values = tensors.layer(0)
    triton_attention.store(keys, values, new, new, index.slots)
    cos, sin = torch.zeros(2, 1, queries, HEAD_DIM, dtype=torch.bfloat16)
    norm = torch.zeros(HEAD_DIM, dtype=torch.bfloat16) if normed else None
    rotation = HeadRotation(cos, sin, norm, norm, 1e-6)
    query = triton_attention.rotate_and_store(keys, values, query, new, new, index.slots, rotation)
    triton_attention.attend(query, keys, values, index, scaling=0.1, window=None, softcap=None)


def used(kernel: Any, folder: Path) -> dict[str, int]:
    """Registers of a thread, and bytes of its stack and local memory."""
    binary = folder / "kernel.cubin"
    binary.write_bytes(kernel.asm["cubin"])
    told = subprocess.run(
        [TOOLS / "cuobjdump", "-res-usage", binary], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return {name: int(count) for name, count in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", told)}


def test_decoding_loads_ahead_and_keeps_everything_in_registers(launched: dict[str, Launches], tmp_path: Path) -> None:
    launch(1, past=600)

    kernels = {name: kernel.compiled() for name, kernel in launched.items()}

    for kernel in kernels.values():
        resources = used(kernel, tmp_path)
        assert (resources["STACK"], resources["LOCAL"]) == (0, 0)
        assert kernel.metadata.shared <= MOST_SHARED
    attend = kernels["attend"]
    assert "cp.async" in attend.asm["ptx"], "keys and values come while others are multiplied"
    assert "mma.sync" in attend.asm["ptx"], "by the tensor cores"
    assert attend.metadata.shared <= 75_000, "tiles of 128 keys were the fastest on an H200"
    assert MOST_SHARED // attend.metadata.shared >= 3
    assert REGISTERS // (used(attend, tmp_path)["REG"] * 32 * 4) >= 3, "programs that a multiprocessor holds"


def test_reading_a_prompt_multiplies_by_warp_groups(launched: dict[str, Launches], tmp_path: Path) -> None:
    launch(200, past=300)

    attend = launched["attend"].compiled()

    resources = used(attend, tmp_path)
    assert (resources["STACK"], resources["LOCAL"]) == (0, 0)
    assert attend.metadata.shared <= 82_000, "two programs a multiprocessor"
    assert "wgmma" in attend.asm["ptx"] and "cp.async" in attend.asm["ptx"]


def test_norms_and_gates_keep_everything_in_registers(
    launched: dict[str, Launches], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    norm, gated = Launches(triton_layers.rms_norm_kernel), Launches(triton_layers.gated_kernel)
    monkeypatch.setattr(triton_layers, "rms_norm_kernel", norm)
    monkeypatch.setattr(triton_layers, "gated_kernel", gated)
    x, weight, siblings = (torch.zeros(shape, dtype=torch.bfloat16) for shape in ((8, 4096), 4096, (8, 28_672)))
    triton_layers.add_rms_norm(x, x, weight, 1e-5)
    triton_layers.gated(siblings[:, :14_336], siblings[:, 14_336:])

    for kernel in (norm.compiled(), gated.compiled()):
        resources = used(kernel, tmp_path)
        assert (resources["STACK"], resources["LOCAL"]) == (0, 0)
        assert kernel.metadata.shared <= 1024, "nothing but the sums of squares"
        assert kernel.asm["ptx"].count("ld.global.v4") >= 2, "several numbers at once"


def test_rotating_behind_a_norm_keeps_everything_in_registers(launched: dict[str, Launches], tmp_path: Path) -> None:
    launch(1, past=600, normed=True)

    rotate = launched["rotate_and_store"].compiled()

    resources = used(rotate, tmp_path)
    assert (resources["STACK"], resources["LOCAL"]) == (0, 0)
    assert rotate.metadata.shared <= 1024, "nothing but the sums of squares"
    assert rotate.asm["ptx"].count("ld.global.v4") >= 1, "several numbers at once"
