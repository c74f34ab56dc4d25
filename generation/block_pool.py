"""Tracks the blocks of the KV cache: free, used or cached. Holds counts and keys, no tensors."""

from collections import OrderedDict
from collections.abc import Sequence

from generation.prefix import BlockKey


class BlockPool:
    """`blocks` blocks of `block_tokens` tokens with reference counts.

    A block is *used* while a sequence holds it, *cached* when none does but its contents have a key
    and can be found again, else *free*. Free blocks are given out first, then the least recently
    used cached one, one at a time, so pressure never empties the cache at once. Every operation on
    one block is O(1).
    """

    def __init__(self, *, blocks: int, block_tokens: int) -> None:
        assert blocks >= 1
        assert block_tokens >= 1
        self.blocks = blocks
        self.block_tokens = block_tokens
        self._free = list(range(blocks - 1, -1, -1))
        self._references = [0] * blocks
        self._keys: list[BlockKey | None] = [None] * blocks
        self._found: dict[bytes, int] = {}
        self._unused: OrderedDict[int, None] = OrderedDict()  # cached blocks, least recently used first

    @property
    def free(self) -> int:
        """Blocks that hold nothing."""
        return len(self._free)

    @property
    def cached(self) -> int:
        """Blocks that no sequence holds but whose contents can be found by key."""
        return len(self._unused)

    @property
    def used(self) -> int:
        """Blocks that a sequence holds."""
        return self.blocks - self.free - self.cached

    @property
    def available(self) -> int:
        """Blocks that can be allocated now."""
        return self.free + self.cached

    def match(self, keys: Sequence[BlockKey]) -> list[int]:
        """The blocks of the longest cached prefix of `keys`. Changes nothing; safe from any thread."""
        blocks: list[int] = []
        for key in keys:
            block = self._found.get(key.digest)
            if block is None or self._keys[block] != key:  # verified, because two keys may share a digest
                break
            blocks.append(block)
        return blocks

    def allocate(self, count: int) -> list[int] | None:
        """Hold `count` blocks with no contents, or None when fewer are available.

        Cached blocks among them are forgotten.
        """
        if count > self.available:
            return None
        blocks = []
        for _ in range(count):
            if self._free:
                block = self._free.pop()
            else:
                block, _ = self._unused.popitem(last=False)
                self._forget(block)
            self._references[block] = 1
            blocks.append(block)
        return blocks

    def evict(self, count: int) -> list[int]:
        """Forget up to `count` cached blocks, the least recently used first, and return them; they are free now."""
        evicted = []
        for _ in range(min(count, len(self._unused))):
            block, _ = self._unused.popitem(last=False)
            self._forget(block)
            self._free.append(block)
            evicted.append(block)
        return evicted

    def acquire(self, blocks: Sequence[int]) -> None:
        """Hold blocks that were found."""
        for block in blocks:
            if self._references[block] == 0:
                del self._unused[block]
            self._references[block] += 1

    def publish(self, block: int, key: BlockKey) -> bool:
        """Name a held block's contents; False when another block has that name already."""
        assert self._references[block] > 0, "only a holder knows the contents"
        assert self._keys[block] is None, "a block's contents change only through allocate"
        if key.digest in self._found:
            return False
        self._keys[block] = key
        self._found[key.digest] = block
        return True

    def release(self, blocks: Sequence[int]) -> None:
        """Let blocks of one sequence go, given in its order; its end will be evicted before its beginning."""
        for block in reversed(blocks):
            self._references[block] -= 1
            assert self._references[block] >= 0, "released more often than held"
            if self._references[block] == 0:
                if self._keys[block] is None:
                    self._free.append(block)
                else:
                    self._unused[block] = None

    def discard(self, keys: Sequence[BlockKey]) -> None:
        """Remove keys from the cache, because their contents may be wrong. Sequences keep their blocks."""
        for key in keys:
            block = self._found.get(key.digest)
            if block is None:
                continue
            self._forget(block)
            if self._references[block] == 0:
                del self._unused[block]
                self._free.append(block)

    def check_integrity(self) -> None:
        """Assert that the books balance: free + used + cached = all, each block in one place."""
        free, cached = set(self._free), set(self._unused)
        held = {block for block in range(self.blocks) if self._references[block] > 0}
        assert len(free) == len(self._free)
        assert not free & cached
        assert not free & held
        assert not cached & held
        assert free | cached | held == set(range(self.blocks))
        assert all(self._keys[block] is None for block in free)
        named = {block for block in range(self.blocks) if self._keys[block] is not None}
        assert cached <= named
        assert named == set(self._found.values())
        assert len(named) == len(self._found)

    def _forget(self, block: int) -> None:
        key = self._keys[block]
        assert key is not None
        del self._found[key.digest]
        self._keys[block] = None
