"""What this machine can do at most: bytes read and products computed in a second."""

import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def limits(weight_bytes: int) -> dict[str, float]:
    """Read bandwidth over as many bytes as the model's weights (GB/s), and the rate of a large product (TFLOP/s)."""
    weights = torch.ones(weight_bytes // 4)
    left, right = torch.randn(1024, 1024), torch.randn(1024, 1024)
    read = best_of(weights.sum)
    product = best_of(lambda: left @ right)
    return {
        "read_gb_s": round(weights.numel() * 4 / read / 1e9, 2),
        "fp32_tflop_s": round(2 * 1024**3 / product / 1e12, 3),
    }


def best_of(run: Callable[[], object], *, rounds: int = 7) -> float:
    """Seconds of the fastest of some rounds: what the machine can do when nothing disturbs it."""
    run()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def description() -> dict[str, Any]:
    """Processor, memory, versions and load: what a figure is worth nothing without."""
    import psutil
    import transformers

    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    interesting = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
    return {
        "processor": models[0] if models else platform.processor(),
        "instructions": [name for name in interesting if f" {name}" in flags],
        "threads": torch.get_num_threads(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "load_before": round(psutil.getloadavg()[0], 2),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def median(values: list[float]) -> float:
    """The middle of what was measured."""
    return statistics.median(values)
