"""The cache's layout: slabs that a CPU reads in one go, or pages that sequences on a GPU share."""

import logging
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import torch

from generation.attention import Batch, Row, SlabBatch
from generation.kv_cache import SlabCache
from generation.paged_attention import PagedBatch
from generation.paged_cache import PagedCache, PagedTensors
from generation.paged_index import PagedRow
from generation.sequence import SequenceState

if TYPE_CHECKING:
    from generation.block_pool import BlockPool
    from generation.prefix import BlockKey
    from generation.weights import LoadedModel

logger = logging.getLogger("footnote.generation")

Layout = Literal["slabs", "pages"]
_BOTH: tuple[Literal["reference", "triton"], ...] = ("reference", "triton")
Span = tuple[SequenceState, int, int]


class Cache(Protocol):
    """What the two layouts have in common; `kv_cache.SlabCache` says what each method does."""

    pool: "BlockPool"

    def match(self, keys: "Sequence[BlockKey]", *, limit: int) -> int:
        """Tokens that need not be computed."""
        ...

    def begin(self, owner: Hashable, keys: "Sequence[BlockKey]", *, tokens: int, limit: int) -> int | None:
        """Room for a sequence."""
        ...

    def grow(self, owner: Hashable, tokens: int) -> bool:
        """More room."""
        ...

    def offer(self, owner: Hashable, keys: "Sequence[BlockKey]", *, computed: int) -> None:
        """Let others find what is computed."""
        ...

    def discard(self, keys: "Sequence[BlockKey]") -> None:
        """Let nobody find it."""
        ...

    def release(self, owner: Hashable) -> None:
        """Give the room back."""
        ...

    def check_integrity(self) -> None:
        """Assert that the books balance."""
        ...


class Memory(Protocol):
    """A cache, and how attention reads it in a step."""

    @property
    def cache(self) -> Cache:
        """The cache."""
        ...

    def batch(self, spans: Sequence[Span]) -> Batch:
        """A step's rows: sequences and the packed tokens `start`…`stop` that are theirs, after what is computed."""
        ...


class Slabs:
    """A `Memory` of slabs."""

    def __init__(self, cache: SlabCache) -> None:
        self.cache = cache

    def batch(self, spans: Sequence[Span]) -> SlabBatch:
        """See `Memory.batch`."""
        return SlabBatch([Row(start, stop, owner.computed, self.cache.slab(owner)) for owner, start, stop in spans])


class Pages:
    """A `Memory` of pages."""

    def __init__(self, cache: PagedCache) -> None:
        self.cache = cache

    def batch(self, spans: Sequence[Span]) -> PagedBatch:
        """See `Memory.batch`."""
        rows = [PagedRow(start, stop, owner.computed, self.cache.table(owner)) for owner, start, stop in spans]
        return PagedBatch.build(self.cache.tensors, rows)


def memory_of(
    loaded: "LoadedModel", *, block_tokens: int, layout: Layout | None, prefix_cache: bool, poison: bool
) -> Memory:
    """The memory a model needs on its device.

    Raises:
        RuntimeError: the device has no room for the pages (torch's own error).
    """
    if layout is None:
        layout = "pages" if loaded.device.type == "cuda" and kernels_agree(loaded) else "slabs"
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
        return Pages(PagedCache(tensors, reuse=prefix_cache, poison=poison))
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
    return Slabs(cache)


def kernels_agree(loaded: "LoadedModel") -> bool:
    """Whether the kernels of pages run on the model's device and compute what the reference does.

    A driver or compiler that does not fit shows here, at load, and costs speed instead of every answer.
    """
    heads = int(loaded.model.config.get_text_config().num_attention_heads)
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn((1, count, 40, loaded.head_dim), generator=generator).to(loaded.device, loaded.dtype)
        for count in (heads, loaded.kv_heads, loaded.kv_heads)
    )
    outputs = []
    try:
        for kernels in _BOTH:
            tensors = PagedTensors(
                layers=1,
                kv_heads=loaded.kv_heads,
                head_dim=loaded.head_dim,
                blocks=4,
                block_tokens=16,
                dtype=loaded.dtype,
                device=loaded.device,
            )
            batch = PagedBatch.build(tensors, [PagedRow(0, 39, 0, [2, 0, 1]), PagedRow(39, 40, 0, [3])])
            out = batch.attend(0, query, key, value, scaling=None, window=None, softcap=None, kernels=kernels)
            outputs.append(out.float())
    except Exception:
        logger.exception("the paged attention kernels do not run here; slabs are used instead")
        return False
    expected, got = outputs
    agree = bool((got - expected).norm() <= 0.02 * expected.norm())  # also refuses NaN
    if not agree:
        logger.error("the paged attention kernels compute something else here; slabs are used instead")
    return agree
