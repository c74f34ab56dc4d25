"""Finds a model's weights on this machine, computes their digest and chooses their precision."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


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


def fastest_dtype(*, on_cuda: bool) -> str:
    """float16 on a GPU; on a CPU bfloat16 where the hardware multiplies it, and float32 where it would be emulated."""
    if on_cuda:
        return "float16"
    import torch

    capabilities = getattr(torch.cpu, "get_capabilities", dict)  # absent before torch 2.11
    cpu: Mapping[str, object] = capabilities()
    return "bfloat16" if cpu.get("amx_bf16") or cpu.get("avx512_bf16") else "float32"
