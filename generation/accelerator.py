"""The processor and the GPU of this machine: what they compute natively, what they lack, and an engine's stream.

Importing this module does not import torch, so that an examination of the machine stays quick.
"""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_DRIVER = Path("/proc/driver/nvidia/version")
_DEVICES = Path("/dev")
_FIRST_OF_CUDA_13 = 580  # the oldest driver that runs programs of CUDA 13


def multiplies_bfloat16() -> bool:
    """Whether it has bfloat16 products; without them bfloat16 is emulated, and slower than float32."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.is_file() else ""
    return "amx_bf16" in flags or "avx512_bf16" in flags


def driver_version() -> str | None:
    """The version of the NVIDIA driver in the kernel, as "580.95.05"; None without one (or outside of Linux)."""
    try:
        first = _DRIVER.read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    numbers = [word for word in first.split() if word[0].isdigit() and "." in word]
    return numbers[0] if numbers else None


def why_no_gpu() -> str | None:
    """A sentence on why torch sees no GPU, None where it sees one. Imports torch."""
    import torch

    if torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA: install the wheel of PyPI."
    return _what_the_driver_lacks(torch.version.cuda)


def _what_the_driver_lacks(cuda: str) -> str:
    driver = driver_version()
    if driver is None:
        return "No NVIDIA driver is loaded on this machine."
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in {"", "-1"}:
        return "CUDA_VISIBLE_DEVICES hides the GPU."
    if not any(_DEVICES.glob("nvidia[0-9]*")):
        return (
            f"The NVIDIA driver {driver} is loaded, but /dev has no GPU for this process: "
            "a container needs `--gpus all`, a systemd unit PrivateDevices=false."
        )
    if cuda.startswith("13.") and int(driver.partition(".")[0]) < _FIRST_OF_CUDA_13:
        return f"The NVIDIA driver {driver} is too old for CUDA {cuda}, which needs {_FIRST_OF_CUDA_13}."
    return f"torch cannot start CUDA {cuda} on the NVIDIA driver {driver}; its own warning says more."


def missing_compiler() -> str | None:
    """A sentence on what the GPU's kernels lack to be compiled here; None where nothing is missing.

    Triton compiles a small C extension at first use (triton/runtime/build.py): by $CC, gcc or clang, with Python's
    headers.
    """
    if not os.environ.get("CC") and shutil.which("gcc") is None and shutil.which("clang") is None:
        return "The GPU's kernels need a C compiler once, and there is none: install gcc and libc6-dev."
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    headers = Path(sysconfig.get_paths(scheme=scheme)["include"])
    if not (headers / "Python.h").is_file():
        return f"The GPU's kernels need Python's headers once, and {headers}/Python.h is missing: install python3-dev."
    return None


@contextmanager
def engine_stream(device: "torch.device") -> Iterator[None]:
    """A context in which the calling thread works on a stream of high priority; nothing changes on a CPU.

    Embedding and reranking stay on the default stream: batches of theirs that are queued there do not hold up a step
    of the engine, whose kernels go first where both wait.
    """
    if device.type != "cuda":
        yield
        return
    import torch

    stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.default_stream(device))  # weights and cache were written there
    with torch.cuda.stream(stream):
        yield
