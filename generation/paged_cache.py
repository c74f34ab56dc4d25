"""The paged KV cache: blocks of equal size that sequences can share."""

from array import array
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from generation.block_pool import BlockPool
from generation.prefix import BlockKey


class PagedTensors:
    """Two tensors, `keys` and `values`: [layers, blocks + 1, block_tokens, kv_heads, head_dim].

    A sequence's block table names the blocks that hold its positions in order (PagedAttention, Kwon et
    al. 2023, arXiv:2309.06180). `BlockPool` assigns blocks to sequences; the last block, `trash`, belongs to
    none: rows that only pad a batch write there. Unwritten values are undefined and never read.
    """

    def __init__(
        self,
        *,
        layers: int,
        kv_heads: int,
        head_dim: int,
        blocks: int,
        block_tokens: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Allocate room for `blocks` blocks of `block_tokens` tokens, and the trash block.

        Raises:
            RuntimeError: the device is out of memory (torch's own error).
        """
        assert min(layers, kv_heads, head_dim, blocks, block_tokens) > 0
        shape = (layers, blocks + 1, block_tokens, kv_heads, head_dim)
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty(shape, dtype=dtype, device=device)
        self.block_tokens = block_tokens
        self.kv_heads = kv_heads
        self.head_dim = head_dim
        self.trash = blocks

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.keys.device

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer: [blocks + 1, block_tokens, kv_heads, head_dim] views."""
        return self.keys[layer], self.values[layer]


class PagedCache:
    """Block tables over paged tensors: sequences that begin alike hold the same blocks.

    For GPUs. A found block costs a reference, not a copy. Shared blocks are full and read-only: a
    sequence writes past what it found, into blocks of its own.
    """

    def __init__(self, tensors: PagedTensors, *, reuse: bool = True, poison: bool = False) -> None:
        """Take empty tensors.

        Args:
            tensors: The cache's memory.
            reuse: Let later sequences find blocks.
            poison: Fill fresh blocks with NaN, so that reading unwritten values is noticed (for tests).
        """
        self.tensors = tensors
        self.pool = BlockPool(blocks=tensors.trash, block_tokens=tensors.block_tokens)
        self._reuse = reuse
        self._poison = poison
        self._tables: dict[Hashable, array[int]] = {}  # arrays go to the device without a look at each number
        self._offered: dict[Hashable, int] = {}

    def match(self, keys: Sequence[BlockKey], *, limit: int) -> int:
        """See `kv_cache.SlabCache.match`."""
        size = self.pool.block_tokens
        return size * len(self.pool.match(keys[: limit // size])) if self._reuse else 0

    def allocate(self, owner: Hashable, keys: Sequence[BlockKey], *, tokens: int, limit: int) -> int | None:
        """See `kv_cache.SlabCache.begin`; nothing is allocated, so memory cannot run out."""
        assert owner not in self._tables, "one block table per sequence"
        size = self.pool.block_tokens
        found = self.pool.match(keys[: limit // size]) if self._reuse else []
        self.pool.acquire(found)
        rest = self._take(-(-tokens // size) - len(found))
        if rest is None:
            self.pool.release(found)
            return None
        self._tables[owner] = array("i", found + rest)
        self._offered[owner] = len(found)
        return len(found) * size

    def grow(self, owner: Hashable, tokens: int) -> bool:
        """See `kv_cache.SlabCache.grow`."""
        table = self._tables[owner]
        more = self._take(max(0, -(-tokens // self.pool.block_tokens) - len(table)))
        table.extend(more or [])
        return more is not None

    def table(self, owner: Hashable) -> Sequence[int]:
        """The blocks of a sequence that has some, in the order of its positions."""
        return self._tables[owner]

    def offer(self, owner: Hashable, keys: Sequence[BlockKey], *, computed: int) -> None:
        """See `kv_cache.SlabCache.offer`; a block that another has computed too keeps no name."""
        full = min(computed // self.pool.block_tokens, len(keys))
        if self._reuse:
            for place in range(self._offered[owner], full):
                self.pool.publish(self._tables[owner][place], keys[place])
            self._offered[owner] = max(full, self._offered[owner])

    def discard(self, keys: Sequence[BlockKey]) -> None:
        """See `kv_cache.SlabCache.discard`."""
        self.pool.discard(keys)

    def shed(self, share: float) -> int:
        """Do nothing: the pages are allocated once for all. Returns 0."""
        del share
        return 0

    def deallocate(self, owner: Hashable) -> None:
        """See `kv_cache.SlabCache.release`."""
        self.pool.release(self._tables.pop(owner, array("i")))
        self._offered.pop(owner, None)

    def check_integrity(self) -> None:
        """Assert that the books balance and that each block's holders are counted."""
        self.pool.check_integrity()
        held = [block for table in self._tables.values() for block in table]
        assert self.pool.used == len(set(held))
        assert all(len(set(table)) == len(table) for table in self._tables.values())

    def _take(self, count: int) -> list[int] | None:
        blocks = self.pool.allocate(count)
        if blocks and self._poison:
            self.tensors.keys[:, blocks] = float("nan")
            self.tensors.values[:, blocks] = float("nan")
        return blocks
