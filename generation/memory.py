"""The memory layout of the KV cache: contiguous slabs on a CPU, shared pages on a GPU."""

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import Tensor

from generation.accelerator import missing_compiler
from generation.attention import Batch, Rotation, Row, SlabBatch
from generation.kv_cache import SlabCache
from generation.paged_attention import PagedBatch
from generation.paged_cache import PagedCache, PagedTensors
from generation.paged_index import PagedIndex, PagedRow, Upload, upload
from generation.sequence import SequenceState

if TYPE_CHECKING:
    from generation.block_pool import BlockPool
    from generation.prefix import BlockKey
    from generation.weights import LoadedModel

logger = logging.getLogger("footnote.generation")

Layout = Literal["slabs", "pages"]
_BOTH: tuple[Literal["reference", "triton"], ...] = ("reference", "triton")
_TRIAL = ((300, 150), (600, 1), (40, 1), (511, 1))
"""Tokens before and queries of each row by which the kernels are judged: several tiles, several splits, and one."""
_ROTATED = 2  # of these rows
_TRIAL_BLOCK = 16
_TOLERANCE = 0.02  # of the norm of what is attended
TokenRun = tuple[SequenceState, int, int]


class Cache(Protocol):
    """The interface of both layouts; see `kv_cache.SlabCache` for each method."""

    pool: "BlockPool"

    def match(self, keys: "Sequence[BlockKey]", *, limit: int) -> int:
        """Tokens that need not be computed."""
        ...

    def allocate(self, owner: Hashable, keys: "Sequence[BlockKey]", *, tokens: int, limit: int) -> int | None:
        """Room for a sequence."""
        ...

    def grow(self, owner: Hashable, tokens: int) -> bool:
        """More room."""
        ...

    def offer(self, owner: Hashable, keys: "Sequence[BlockKey]", *, computed: int) -> None:
        """Publish the computed blocks for other sequences."""
        ...

    def discard(self, keys: "Sequence[BlockKey]") -> None:
        """Remove these blocks from the cache."""
        ...

    def shed(self, share: float) -> int:
        """Forget a share of the cached blocks; returns the bytes freed."""
        ...

    def deallocate(self, owner: Hashable) -> None:
        """Give the room back."""
        ...

    def check_integrity(self) -> None:
        """Assert that the counts of blocks are consistent."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class StepInputs:
    """The model's input tensors in a step, on its device.

    Attributes:
        ids: [1, T] int64 token ids, the rows' packed one after the other.
        positions: [1, T] int64; the position of each in its sequence.
        kept: [n] int64; the packed tokens after which logits are wanted.
        batch: The sequences that the tokens belong to.
    """

    ids: Tensor
    positions: Tensor
    kept: Tensor
    batch: Batch


class Memory(Protocol):
    """A KV cache and its attention batches."""

    @property
    def cache(self) -> Cache:
        """The cache."""
        ...

    def inputs(self, spans: Sequence[TokenRun], ids: Sequence[int], kept: Sequence[int]) -> StepInputs:
        """A step on the device, in one copy.

        Args:
            spans: Sequences and the packed tokens `start`…`stop` that are theirs, after what is computed.
            ids: The packed tokens.
            kept: See `StepInputs`.
        """
        ...


class Slabs:
    """A `Memory` of slabs. `why` is a sentence on why a GPU is served from slabs; None on a CPU."""

    def __init__(
        self, cache: SlabCache, *, device: torch.device, blocked: bool = False, why: str | None = None
    ) -> None:
        self.cache = cache
        self.why = why
        self._blocked = blocked
        self._device = device

    def inputs(self, spans: Sequence[TokenRun], ids: Sequence[int], kept: Sequence[int]) -> StepInputs:
        """See `Memory.inputs`."""
        rows = [Row(start, stop, owner.computed, self.cache.slab(owner)) for owner, start, stop in spans]
        packed = torch.tensor([*ids, *_positions(spans), *kept], device=self._device)
        return _inputs(packed, len(ids), SlabBatch(rows, blocked=self._blocked))


class Pages:
    """A `Memory` of pages."""

    def __init__(self, cache: PagedCache, *, upload: Upload = upload) -> None:
        self.cache = cache
        self._upload = upload

    def rows(self, spans: Sequence[TokenRun]) -> list[PagedRow]:
        """The spans in the form that the paged attention reads."""
        return [PagedRow(start, stop, owner.computed, self.cache.table(owner)) for owner, start, stop in spans]

    def inputs(self, spans: Sequence[TokenRun], ids: Sequence[int], kept: Sequence[int]) -> StepInputs:
        """See `Memory.inputs`."""
        tensors, carried = self.cache.tensors, [*ids, *_positions(spans), *kept]
        index = PagedIndex(tensors, self.rows(spans), carried=carried, upload=self._upload)
        return _inputs(index.carried.long(), len(ids), PagedBatch(tensors, index))


def _positions(spans: Sequence[TokenRun]) -> list[int]:
    return [place for owner, start, stop in spans for place in range(owner.computed, owner.computed + stop - start)]


def _inputs(packed: Tensor, count: int, batch: Batch) -> StepInputs:
    """Of [ids, positions, kept] in one tensor, `count` ids."""
    return StepInputs(packed[None, :count], packed[None, count : 2 * count], packed[2 * count :], batch)


def memory_of(
    loaded: "LoadedModel",
    *,
    block_tokens: int,
    layout: Layout | None,
    prefix_cache: bool,
    poison: bool,
    upload: Upload = upload,
) -> Memory:
    """The memory a model needs on its device.

    Args:
        loaded: The model.
        block_tokens: Tokens that are cached, or not, together.
        layout: None takes pages on a GPU and slabs on a CPU.
        prefix_cache: Let later sequences reuse the blocks of earlier ones.
        poison: Fill fresh room with NaN (for tests).
        upload: Copies a step's numbers to the device, for pages.

    Raises:
        RuntimeError: the device has no room for the pages (torch's own error).
    """
    why = None
    if layout is None:
        why = why_no_pages(loaded) if loaded.device.type == "cuda" else None
        layout = "pages" if loaded.device.type == "cuda" and why is None else "slabs"
    if layout == "pages":
        tensors = PagedTensors(
            layers=loaded.layers,
            kv_heads=loaded.kv_heads,
            head_dim=loaded.head_dim,
            blocks=loaded.kv_capacity_tokens // block_tokens,
            block_tokens=block_tokens,
            dtype=loaded.dtype,
            device=loaded.device,
        )
        return Pages(PagedCache(tensors, reuse=prefix_cache, poison=poison), upload=upload)
    cache = SlabCache(
        layers=loaded.layers,
        kv_heads=loaded.kv_heads,
        head_dim=loaded.head_dim,
        capacity_tokens=loaded.kv_capacity_tokens,
        block_tokens=block_tokens,
        dtype=loaded.dtype,
        device=loaded.device,
        reuse=prefix_cache,
        poison=poison,
    )
    return Slabs(cache, device=loaded.device, blocked=loaded.blocked_attention, why=why)


def why_no_pages(loaded: "LoadedModel") -> str | None:
    """A sentence on why the kernels of pages cannot be used on the model's device; None where they can.

    They are compared with the reference in a step that uses all of them: a prompt of several tiles that continues
    behind many keys, and single tokens whose keys are one split, and several. A driver or compiler that does not fit
    shows here, at load, and costs speed instead of every answer.
    """
    try:
        expected, got = (_attend_once(loaded, kernels) for kernels in _BOTH)
    except Exception as error:
        logger.exception("the paged attention kernels do not run here; slabs are used instead")
        return missing_compiler() or f"The attention kernels do not run here ({type(error).__name__}: see the log)."
    if not bool((got - expected).norm() <= _TOLERANCE * expected.norm()):  # also refuses NaN
        logger.error("the paged attention kernels compute something else here; slabs are used instead")
        return "The attention kernels compute something else than torch here."
    return None


def _attend_once(loaded: "LoadedModel", kernels: Literal["reference", "triton"]) -> Tensor:
    """[1, T + 2, heads, head_dim] float32: attention of the trial's rows over random keys, by these kernels.

    Behind them is one row again, rotated, and rotated behind a norm.
    """
    heads = int(loaded.model.config.get_text_config().num_attention_heads)
    generator = torch.Generator().manual_seed(0)
    blocks = [-(-(past + queries) // _TRIAL_BLOCK) for past, queries in _TRIAL]
    tensors = PagedTensors(
        layers=1,
        kv_heads=loaded.kv_heads,
        head_dim=loaded.head_dim,
        blocks=sum(blocks),
        block_tokens=_TRIAL_BLOCK,
        dtype=loaded.dtype,
        device=loaded.device,
    )

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(loaded.device, loaded.dtype)

    tensors.keys.copy_(noise(*tensors.keys.shape))
    tensors.values.copy_(noise(*tensors.values.shape))
    numbers = torch.randperm(sum(blocks), generator=generator).tolist()  # a sequence's blocks lie anywhere
    rows: list[PagedRow] = []
    for (past, queries), count in zip(_TRIAL, blocks, strict=True):
        start = rows[-1].stop if rows else 0
        rows.append(PagedRow(start, start + queries, past, [numbers.pop() for _ in range(count)]))
    tokens = rows[-1].stop
    query, key, value = (
        noise(1, count, tokens, loaded.head_dim) for count in (heads, loaded.kv_heads, loaded.kv_heads)
    )
    batch = PagedBatch.build(tensors, rows, kernels=kernels)
    attended = [batch.attend(0, query, key, value, scaling=None, window=None, softcap=None)]
    past, queries = _TRIAL[_ROTATED]
    batch = PagedBatch.build(tensors, [PagedRow(0, queries, past, rows[_ROTATED].blocks)], kernels=kernels)
    cos, sin = noise(2, 1, queries, loaded.head_dim)
    norm = noise(loaded.head_dim)
    first = [states[:, :, :queries] for states in (query, key, value)]
    attended.extend(
        batch.attend(0, *first, scaling=None, window=None, softcap=None, rotation=rotation)
        for rotation in (Rotation(cos, sin), Rotation(cos, sin, norm, norm, 1e-6))
    )
    return torch.cat(attended, 1).float()
