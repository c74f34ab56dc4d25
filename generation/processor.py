"""Detects which number formats the processor multiplies natively."""

from pathlib import Path


def multiplies_bfloat16() -> bool:
    """Whether it has bfloat16 products; without them bfloat16 is emulated, and slower than float32."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.is_file() else ""
    return "amx_bf16" in flags or "avx512_bf16" in flags
