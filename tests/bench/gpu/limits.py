"""The machine: its card, driver, compiler and versions, and the two limits that speeds are compared with."""

import platform
import time
from collections.abc import Callable
from typing import Any

import torch

from generation.accelerator import driver_version, missing_compiler
from tests.bench.gpu.checklist import Checklist
from tests.bench.gpu.sizes import Sizes


def timed(work: Callable[[], object], device: torch.device, *, rounds: int = 5) -> float:
    """Seconds of a call, the fastest of three times `rounds`, until the device has done it."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    work()
    best = float("inf")
    for _ in range(3):
        wait()
        started = time.perf_counter()
        for _ in range(rounds):
            work()
        wait()
        best = min(best, (time.perf_counter() - started) / rounds)
    return best


def machine(checks: Checklist, sizes: Sizes, device: torch.device) -> tuple[float, float]:
    """Bytes a second that a copy reads and writes, and operations a second of a product; facts go to the list."""
    import transformers

    try:
        from triton import __version__ as triton
    except ImportError:
        triton = None
    facts: dict[str, Any] = {
        "card": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "driver": driver_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton,
        "transformers": transformers.__version__,
        "shape": sizes.shape,
    }
    if device.type == "cuda":
        checks.check("Triton can be compiled for", (lacks := missing_compiler()) is None, lacks or "")
    bandwidth, flops = _copied(sizes, device), _multiplied(sizes, device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
    checks.facts = facts | {"copy_tb_s": round(bandwidth / 1e12, 4), "product_tflop_s": round(flops / 1e12, 3)}
    for name, fact in checks.facts.items():
        checks.say(f"{name}: {fact}")
    return bandwidth, flops


def _copied(sizes: Sizes, device: torch.device) -> float:
    """Bytes read and written a second."""
    source, target = (torch.zeros(sizes.copied, dtype=torch.uint8, device=device) for _ in range(2))
    return 2 * sizes.copied / timed(lambda: target.copy_(source), device)


def _multiplied(sizes: Sizes, device: torch.device) -> float:
    """Operations a second."""
    left, right = (torch.randn((sizes.side, sizes.side), device=device, dtype=sizes.dtype) for _ in range(2))
    return 2 * sizes.side**3 / timed(lambda: left @ right, device)
