"""The KV cache on a CPU: a contiguous slab for each sequence, and copies of blocks for reuse."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from generation.block_pool import BlockPool
from generation.prefix import BlockKey

# A slab that must grow takes room for this many more tokens: growing copies it.
_GROWTH_TOKENS = 128


@dataclass(slots=True, eq=False)
class Slab:
    """Keys and values of one sequence: [layers, 2, kv_heads, capacity, head_dim], positions from 0."""

    tensor: Tensor

    @property
    def capacity(self) -> int:
        """Tokens it has room for."""
        return int(self.tensor.shape[3])

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store [kv_heads, n, head_dim] at positions `start`…`start + n`; return views of all up to there."""
        stop = start + key.shape[1]
        assert stop <= self.capacity, "a write past the slab's end"
        layer_slab = self.tensor[layer]
        layer_slab[0, :, start:stop] = key
        layer_slab[1, :, start:stop] = value
        return layer_slab[0, :, :stop], layer_slab[1, :, :stop]


@dataclass(slots=True, eq=False)
class _Held:
    """A sequence's room: its slab, the blocks it counts as, and how many of its blocks were offered for reuse."""

    slab: Slab
    blocks: list[int]
    offered: int


class SlabCache:
    """Slabs and cached blocks within one memory limit, counted in blocks.

    On a CPU attention reads a contiguous slab 2.4 times faster than gathered pages, so a running
    sequence has its own slab, and blocks to be reused are copied: 2,000 tokens of the
    default model in about 60 ms, where computing them takes seconds. A slab counts as the blocks it
    covers, a copy as one.
    """

    def __init__(
        self,
        *,
        layers: int,
        kv_heads: int,
        head_dim: int,
        capacity_tokens: int,
        block_tokens: int,
        dtype: torch.dtype,
        device: torch.device,
        reuse: bool = True,
        poison: bool = False,
    ) -> None:
        """Allocate nothing yet.

        Args:
            layers: Of the model, as the next two.
            kv_heads: Key heads.
            head_dim: Width of a head.
            capacity_tokens: Bounds slabs and copies together.
            block_tokens: Tokens in a block.
            dtype: Of keys and values.
            device: Where they are.
            reuse: Keep copies of blocks for later sequences.
            poison: Fill fresh slabs with NaN, so that reading unwritten values is noticed (for tests).
        """
        self._shape = (layers, 2, kv_heads, head_dim)
        self._dtype = dtype
        self._device = device
        self._reuse = reuse
        self._poison = poison
        self.pool = BlockPool(blocks=capacity_tokens // block_tokens, block_tokens=block_tokens)
        self._held: dict[Hashable, _Held] = {}
        self._copies: dict[int, Tensor] = {}

    def match(self, keys: Sequence[BlockKey], *, limit: int) -> int:
        """How many of the first `limit` tokens named by `keys` need not be computed. Safe from any thread."""
        size = self.pool.block_tokens
        return size * len(self.pool.match(keys[: limit // size])) if self._reuse else 0

    def allocate(self, owner: Hashable, keys: Sequence[BlockKey], *, tokens: int, limit: int) -> int | None:
        """Give `owner` room for `tokens` tokens, the longest cached prefix already in it.

        Args:
            owner: A sequence without room.
            keys: Names of its full blocks.
            tokens: Room it needs now, at least.
            limit: Most tokens that may come from the cache.

        Returns:
            How many tokens came from the cache; None, and nothing changed, when there is no room.

        Raises:
            RuntimeError: the machine is out of memory (torch's own error); nothing changed.
        """
        assert owner not in self._held, "one slab per sequence"
        size = self.pool.block_tokens
        found = self.pool.match(keys[: limit // size]) if self._reuse else []
        if not self._held:
            # What is copied is in the cache and in the slab at once. No sequence will give room back, so one that needs
            # most of the memory reuses less: waiting for room beside all that it could copy, it would wait for ever.
            found = found[: max(0, self.pool.available - -(-tokens // size))]
        self.pool.acquire(found)  # or they might be evicted to make room for their own reader
        try:
            held = self._take(tokens)
            if held is None:
                return None
            for index, block in enumerate(found):
                held.slab.tensor[:, :, :, index * size : (index + 1) * size] = self._copies[block]
        finally:
            self.pool.release(found)
        held.offered = len(found)
        self._held[owner] = held
        return len(found) * size

    def grow(self, owner: Hashable, tokens: int) -> bool:
        """Make `owner`'s room hold `tokens` tokens; False, and nothing changed, when it cannot.

        Raises:
            RuntimeError: the machine is out of memory (torch's own error); nothing changed.
        """
        old = self._held[owner]
        if tokens <= old.slab.capacity:
            return True
        size = self.pool.block_tokens
        missing = -(-tokens // size) - len(old.blocks)
        for count in (missing + _GROWTH_TOKENS // size, missing):
            if count > self.pool.available:
                continue
            slab = self._allocate(len(old.blocks) + count)  # first: it may fail
            blocks = self.pool.allocate(count)
            assert blocks is not None, "just counted"
            self._drop_copies(blocks)
            slab.tensor[:, :, :, : old.slab.capacity] = old.slab.tensor
            self._held[owner] = _Held(slab, old.blocks + blocks, old.offered)
            return True
        return False

    def slab(self, owner: Hashable) -> Slab:
        """The slab of a sequence that has one."""
        return self._held[owner].slab

    def offer(self, owner: Hashable, keys: Sequence[BlockKey], *, computed: int) -> None:
        """Copy `owner`'s full blocks among its first `computed` tokens that are not cached yet.

        A block for which no free or cached block can be allocated is not kept; running sequences come first.
        """
        held, size = self._held[owner], self.pool.block_tokens
        full = min(computed // size, len(keys))
        if not self._reuse or full <= held.offered:
            return
        for index in range(held.offered, full):
            held.offered = index + 1
            if self.pool.match([keys[index]]):
                continue
            blocks = self.pool.allocate(1)
            if blocks is None:
                continue
            self._drop_copies(blocks)
            try:
                self._copies[blocks[0]] = held.slab.tensor[:, :, :, index * size : (index + 1) * size].clone()
                self.pool.publish(blocks[0], keys[index])
            finally:
                self.pool.release(blocks)
        # All of it was just used, and its end is to be evicted before its beginning.
        chain = self.pool.match(keys[:full])
        self.pool.acquire(chain)
        self.pool.release(chain)

    def discard(self, keys: Sequence[BlockKey]) -> None:
        """Remove the blocks with these keys from the cache."""
        for key in keys:
            for block in self.pool.match([key]):
                self._copies.pop(block, None)
        self.pool.discard(keys)

    def shed(self, share: float) -> int:
        """Forget a share of the cached blocks, at least one of several, and return the bytes that were freed."""
        blocks = self.pool.evict(math.ceil(share * self.pool.cached))
        freed = sum(self._copies[block].nbytes for block in blocks)
        self._drop_copies(blocks)
        return freed

    def deallocate(self, owner: Hashable) -> None:
        """Release the slab of `owner`, if it holds one."""
        held = self._held.pop(owner, None)
        if held is not None:
            self.pool.release(held.blocks)

    def check_integrity(self) -> None:
        """Assert that the books balance and that slabs are as large as booked, and apart."""
        self.pool.check_integrity()
        size = self.pool.block_tokens
        for held in self._held.values():
            assert held.slab.capacity == len(held.blocks) * size
        assert self.pool.used == sum(len(held.blocks) for held in self._held.values())
        assert len(self._copies) == self.pool.cached
        addresses = [held.slab.tensor.data_ptr() for held in self._held.values()]
        assert len(set(addresses)) == len(addresses)

    def _take(self, tokens: int) -> _Held | None:
        count = -(-tokens // self.pool.block_tokens)
        if count > self.pool.available:
            return None
        slab = self._allocate(count)
        blocks = self.pool.allocate(count)
        assert blocks is not None, "just counted"
        self._drop_copies(blocks)
        return _Held(slab, blocks, 0)

    def _allocate(self, blocks: int) -> Slab:
        layers, two, kv_heads, head_dim = self._shape
        shape = (layers, two, kv_heads, blocks * self.pool.block_tokens, head_dim)
        tensor = torch.empty(shape, dtype=self._dtype, device=self._device)
        if self._poison:
            tensor.fill_(float("nan"))
        return Slab(tensor)

    def _drop_copies(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            self._copies.pop(block, None)
