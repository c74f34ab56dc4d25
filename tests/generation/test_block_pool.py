"""generation.block_pool: allocation, eviction of single blocks, and matching by verified digest."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from generation.block_pool import BlockPool
from generation.prefix import BlockKey, PrefixChain


def chain_of(*tokens: int, salt: str = "") -> list[BlockKey]:
    """Names of blocks of one token."""
    chain = PrefixChain(salt=salt, block_tokens=1)
    chain.extend(tokens)
    return list(chain.keys)


def fill(pool: BlockPool, *tokens: int) -> list[BlockKey]:
    """Cache a chain of blocks of one token that nobody holds any more."""
    keys = chain_of(*tokens)
    blocks = pool.allocate(len(keys))
    assert blocks is not None
    for block, key in zip(blocks, keys, strict=True):
        pool.publish(block, key)
    pool.release(blocks)
    return keys


def test_a_released_block_with_a_name_is_found_again() -> None:
    pool = BlockPool(blocks=4, block_tokens=1)
    keys = fill(pool, 1, 2, 3)

    assert len(pool.match(keys)) == 3
    assert len(pool.match(chain_of(1, 2, 9))) == 2
    assert pool.match(chain_of(1, 2, 3, salt="other")) == []
    assert (pool.free, pool.used, pool.cached) == (1, 0, 3)


def test_what_was_used_longest_ago_goes_first_and_the_end_of_a_chain_before_its_beginning() -> None:
    pool = BlockPool(blocks=6, block_tokens=1)
    old, new = fill(pool, 1, 2, 3), fill(pool, 7, 8, 9)
    found = pool.match(old)
    pool.acquire(found)
    pool.release(found)  # now `new` is the older one

    assert pool.allocate(2) is not None

    assert len(pool.match(old)) == 3
    assert len(pool.match(new)) == 1


def test_pressure_takes_what_is_needed_and_no_more() -> None:
    pool = BlockPool(blocks=10, block_tokens=1)
    keys = fill(pool, *range(10))

    for left in (9, 8, 7):
        assert pool.allocate(1) is not None
        assert len(pool.match(keys)) == left


def test_an_allocation_beyond_the_free_blocks_returns_none_and_evicts_nothing() -> None:
    pool = BlockPool(blocks=3, block_tokens=1)
    keys = fill(pool, 1, 2)
    held = pool.allocate(1)

    assert pool.allocate(3) is None
    assert held is not None
    assert len(pool.match(keys)) == 2
    pool.check_integrity()


def test_a_digest_collision_with_other_tokens_or_parent_is_no_match() -> None:
    pool = BlockPool(blocks=3, block_tokens=1)
    [key] = fill(pool, 1)

    assert pool.match([replace(key, tokens=b"other")]) == []
    assert pool.match([replace(key, parent=b"other")]) == []


def test_a_distrusted_block_is_forgotten_but_stays_with_its_holder() -> None:
    pool = BlockPool(blocks=3, block_tokens=1)
    keys = fill(pool, 1, 2)
    held = pool.match(keys[:1])
    pool.acquire(held)

    pool.discard(keys)

    assert pool.match(keys) == []
    assert (pool.free, pool.used, pool.cached) == (2, 1, 0)
    pool.release(held)
    assert pool.free == 3


class PoolMachine(RuleBasedStateMachine):
    """Against a model that remembers who holds what."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(blocks=8, block_tokens=1)
        self.holders: list[list[int]] = []

    @rule(count=st.integers(1, 4))
    def allocate(self, count: int) -> None:
        available = self.pool.available
        blocks = self.pool.allocate(count)
        assert (blocks is None) == (count > available)
        if blocks is not None:
            assert not set(blocks) & {block for held in self.holders for block in held}
            self.holders.append(blocks)

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=5))
    def compute(self, tokens: list[int]) -> None:
        """What a sequence does: find, allocate the rest, publish."""
        keys = chain_of(*tokens)
        found = self.pool.match(keys)
        self.pool.acquire(found)
        rest = self.pool.allocate(len(keys) - len(found))
        if rest is None:
            self.pool.release(found)
            return
        for block, key in zip(rest, keys[len(found) :], strict=True):
            self.pool.publish(block, key)
        self.holders.append(found + rest)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.holders:
            self.pool.release(self.holders.pop(data.draw(st.integers(0, len(self.holders) - 1))))

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=5))
    def discard(self, tokens: list[int]) -> None:
        self.pool.discard(chain_of(*tokens))
        assert self.pool.match(chain_of(*tokens)) == []

    @rule(count=st.integers(0, 9))
    def evict(self, count: int) -> None:
        free, cached = self.pool.free, self.pool.cached
        evicted = self.pool.evict(count)
        assert len(evicted) == min(count, cached)
        assert (self.pool.free, self.pool.cached) == (free + len(evicted), cached - len(evicted))

    @invariant()
    def books_balance(self) -> None:
        self.pool.check_integrity()
        assert self.pool.free + self.pool.used + self.pool.cached == 8
        assert self.pool.used == len({block for held in self.holders for block in held})


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
