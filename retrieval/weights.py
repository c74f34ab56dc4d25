"""Finds, writes and identifies the weights of models, and chooses where and in which precision they run."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

CUDA_BATCH_TOKENS = 16_384
"""Padded tokens of one batch on a GPU: enough to fill it, and done soon, for a generator may wait for it there."""
_ROWS, _NARROW, _WIDE = 256, 384, 1536
"""The product by which bfloat16 is compared with float32: 256 tokens in a layer of a small encoder."""
_ROUNDS = 8
_WORTH_IT = 1.1
"""bfloat16 rounds more, so it must be so many times faster to be chosen."""


def folder_of(model: str, *, local_files_only: bool = True) -> Path:
    """The folder of a model given as a folder or by its Hugging Face id.

    Raises:
        OSError, ValueError: It is not on this machine, and cannot or must not be downloaded.
    """
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download

    # Weights as safetensors only: the same model in other formats would be downloaded for nothing.
    wanted = ["*.json", "*.txt", "*.model", "*.safetensors"]
    unwanted = ["onnx/*", "openvino/*"]
    return Path(
        snapshot_download(model, local_files_only=local_files_only, allow_patterns=wanted, ignore_patterns=unwanted)
    )


@contextmanager
def loading(refused: Exception) -> Iterator[None]:
    """A context manager for reading a model's files: errors of damaged or missing files become `refused`.

    Raises:
        Exception: `refused`.
        OutOfMemoryError: torch's: the model is fine, the device is full.
    """
    import torch
    from safetensors import SafetensorError

    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ImportError,
        RuntimeError,
        SafetensorError,
    ) as error:
        raise refused from error


def digest(folder: Path) -> str:
    """First 16 hex digits of the SHA-256 of the weights; of several files, of their digests in the order of names.

    Raises:
        OSError: There are no weights, or they cannot be read.
    """
    weights = sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("pytorch_model*.bin"))
    if not weights:
        raise OSError("no weights")
    digests = []
    for path in weights:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256"))
    whole = digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(part.digest() for part in digests))
    return whole.hexdigest()[:16]


def on_gpu(device: str, *, absent: Exception) -> bool:
    """Whether a model runs on a GPU: on "cuda", and on "auto" where there is one.

    Raises:
        Exception: `absent`: it is to run on a GPU, but there is none.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise absent
    return device == "cuda" or (device == "auto" and torch.cuda.is_available())


def save_halves(weights: "Mapping[str, Tensor]", file: Path) -> None:
    """Writes weights in half precision as safetensors, whole or not at all; makes the folder.

    Raises:
        ValueError: A weight overflows half precision, or is no number.
        OSError: The file or its folder cannot be written.
    """
    import torch
    from safetensors.torch import save_file

    halves = {name: weight.detach().to("cpu", torch.float16).contiguous() for name, weight in weights.items()}
    if not all(bool(half.isfinite().all()) for half in halves.values()):
        raise ValueError("a weight is too large for half precision, or no number")
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    save_file(halves, new, metadata={"format": "pt"})
    new.replace(file)


def fastest_dtype(*, on_cuda: bool) -> str:
    """float16 on a GPU; on a CPU bfloat16 where the hardware multiplies it and is faster with it, else float32."""
    if on_cuda:
        return "float16"
    return "bfloat16" if _has_bfloat16() and is_worth_it(bfloat16_speed()) else "float32"


def is_worth_it(speed: float) -> bool:
    """Whether bfloat16 that is so many times faster than float32 makes up for its rounding."""
    return speed >= _WORTH_IT


def _has_bfloat16() -> bool:
    import torch

    capabilities = getattr(torch.cpu, "get_capabilities", dict)  # absent before torch 2.11
    cpu: Mapping[str, object] = capabilities()
    return bool(cpu.get("amx_bf16") or cpu.get("avx512_bf16"))


@cache
def bfloat16_speed() -> float:
    """How many times faster than in float32 this processor multiplies in bfloat16; measured once in a process.

    Its instructions alone do not say: some processors with AVX512-BF16 but without AMX take twice as long in bfloat16.
    """
    import torch

    def fastest(dtype: torch.dtype) -> float:
        """Seconds that the fastest of several products of a layer of a small encoder takes."""
        left, right = torch.ones(_ROWS, _NARROW, dtype=dtype), torch.ones(_WIDE, _NARROW, dtype=dtype)
        seconds = []
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            torch.nn.functional.linear(left, right)
            seconds.append(time.perf_counter() - began)
        return min(seconds)

    with torch.inference_mode():
        return fastest(torch.float32) / fastest(torch.bfloat16)
