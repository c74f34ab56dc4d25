"""Computes the memory of a sequence and how many sequences fit, from a model's configuration alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.errors import SetupError
from app.models.folder import resolve
from app.settings import Settings
from generation.accelerator import multiplies_bfloat16, why_no_gpu
from generation.config import ModelShape
from generation.host_memory import HostMemory, default_cache_bytes, read_host_memory

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceMemory:
    """The KV cache size of one sequence at the full context window, and the memory available for sequences.

    `configured` is true when `room_bytes` comes from the setting; else it is what the engine takes by itself.
    """

    shape: ModelShape
    dtype: Literal["float32", "bfloat16", "float16"]
    room_bytes: int
    configured: bool

    @property
    def token_bytes(self) -> int:
        """The bytes of one token."""
        return self.shape.kv_bytes(1, number_bytes=_BYTES[self.dtype])

    @property
    def sequence_bytes(self) -> int:
        """The bytes of a sequence that fills the context window."""
        return self.shape.kv_bytes(self.shape.context_window, number_bytes=_BYTES[self.dtype])

    @property
    def sequences(self) -> int:
        """The number of such sequences that fit."""
        return self.room_bytes // self.sequence_bytes

    def __str__(self) -> str:
        shape = self.shape
        room = (
            f"FOOTNOTE_KV_CACHE_MB={self.room_bytes >> 20}"
            if self.configured
            else f"the {_mib(self.room_bytes)} that the cache takes here unless FOOTNOTE_KV_CACHE_MB is set"
        )
        fit = (
            f"{self.sequences} such sequences fit in {room}"
            if self.sequences
            else f"none fits in {room}, so the window shrinks to {self.room_bytes // self.token_bytes} tokens"
        )
        return (
            f"2 · {shape.layers} layers · {shape.kv_heads} kv heads · {shape.head_dim} head dim · "
            f"{shape.context_window} tokens · {_BYTES[self.dtype]} bytes ({self.dtype}) = {_mib(self.sequence_bytes)} "
            f"for a sequence that fills the context window, {self.token_bytes / 1024:.1f} KiB a token; {fit}."
        )


def sequence_memory(
    settings: Settings,
    *,
    has_cuda: Callable[[], bool] | None = None,
    free_on_cuda: Callable[[], int] | None = None,
    host: HostMemory | None = None,
) -> SequenceMemory:
    """Computes the memory need of the configured generator.

    Args:
        settings: Model, device, format, window and cache.
        has_cuda: Whether there is a CUDA device; None asks torch.
        free_on_cuda: Bytes that are free on the CUDA device; None asks torch.
        host: The memory of the machine; None reads it.

    Raises:
        SetupError: The model is not on this machine, or its configuration lacks the sizes.
    """
    from transformers import AutoConfig

    model = resolve(settings.generator, models_dir=settings.models_dir)
    try:
        configuration = AutoConfig.from_pretrained(model, local_files_only=True, trust_remote_code=False)
        shape = ModelShape.of(configuration, cap=settings.context_window)
    except (OSError, ValueError, AttributeError):
        raise SetupError(f"The configuration of {settings.generator!r} cannot be read.") from None
    device: str = settings.device
    if device == "auto":
        device = "cuda" if (has_cuda or _has_cuda)() else "cpu"
    dtype = settings.dtype
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" or multiplies_bfloat16() else "float32"
    if settings.kv_cache_mb is not None:
        room = settings.kv_cache_mb << 20
    elif device == "cuda":
        room = (free_on_cuda or _free_on_cuda)() // 2
    else:
        window_bytes = shape.kv_bytes(shape.context_window, number_bytes=_BYTES[dtype])
        room = default_cache_bytes(host or read_host_memory(), window_bytes=window_bytes)
    return SequenceMemory(shape=shape, dtype=dtype, room_bytes=room, configured=settings.kv_cache_mb is not None)


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _free_on_cuda() -> int:
    import torch

    try:
        return int(torch.cuda.mem_get_info()[0])
    except (RuntimeError, AssertionError):  # torch built without CUDA asserts
        raise SetupError(f"The device is set to cuda, but torch sees no GPU. {why_no_gpu() or ''}".rstrip()) from None


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
