"""generation.kv_cache gives back exactly what was computed, within its bound."""

import pytest
import torch
from torch import Tensor

from generation.kv_cache import SlabCache
from generation.prefix import BlockKey, PrefixChain

LAYERS, KV_HEADS, HEAD_DIM, BLOCK = 2, 2, 3, 4


def cache_of(capacity_tokens: int, *, reuse: bool = True) -> SlabCache:
    return SlabCache(
        layers=LAYERS,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        capacity_tokens=capacity_tokens,
        block_tokens=BLOCK,
        dtype=torch.float32,
        device=torch.device("cpu"),
        reuse=reuse,
        poison=True,
    )


def keys_of(*tokens: int, salt: str = "") -> list[BlockKey]:
    chain = PrefixChain(salt=salt, block_tokens=BLOCK)
    chain.extend(tokens)
    return list(chain.keys)


def compute(cache: SlabCache, owner: str, start: int, stop: int) -> Tensor:
    """Write made-up keys and values for some positions of every layer; [layers, 2, kv_heads, n, head_dim]."""
    made = torch.randn((LAYERS, 2, KV_HEADS, stop - start, HEAD_DIM), generator=torch.Generator().manual_seed(start))
    for layer in range(LAYERS):
        cache.slab(owner).write(layer, start, made[layer, 0], made[layer, 1])
    return made


def test_a_second_sequence_finds_the_blocks_of_the_first_and_they_hold_what_it_computed() -> None:
    cache, keys = cache_of(100), keys_of(*range(10))
    assert cache.allocate("a", keys, tokens=11, limit=9) == 0
    made = compute(cache, "a", 0, 10)
    cache.offer("a", keys, computed=10)

    found = cache.allocate("b", keys, tokens=11, limit=9)

    assert found == 8
    assert torch.equal(cache.slab("b").tensor[:, :, :, :8], made[:, :, :, :8])
    assert cache.slab("b").tensor[:, :, :, 8:].isnan().all(), "what was not computed is not there"
    cache.check_integrity()


def test_the_first_sequence_writing_on_does_not_change_what_the_second_found() -> None:
    cache, keys = cache_of(100), keys_of(*range(8))
    cache.allocate("a", keys, tokens=9, limit=8)
    made = compute(cache, "a", 0, 8)
    cache.offer("a", keys, computed=8)
    compute(cache, "a", 4, 8)

    cache.allocate("b", keys, tokens=9, limit=8)

    assert torch.equal(cache.slab("b").tensor[:, :, :, :8], made)


def test_only_fully_computed_blocks_are_offered_to_the_prefix_cache() -> None:
    cache, keys = cache_of(100), keys_of(*range(12))
    cache.allocate("a", keys, tokens=13, limit=11)
    compute(cache, "a", 0, 7)

    cache.offer("a", keys, computed=7)

    assert cache.match(keys, limit=12) == 4


def test_growing_a_slab_keeps_its_keys_and_values() -> None:
    cache = cache_of(400)
    cache.allocate("a", [], tokens=5, limit=0)
    made = compute(cache, "a", 0, 5)

    assert cache.grow("a", 9)

    assert torch.equal(cache.slab("a").tensor[:, :, :, :5], made)
    assert cache.slab("a").capacity >= 9
    cache.check_integrity()


def test_running_sequences_evict_cached_blocks_but_never_each_other() -> None:
    cache, keys = cache_of(24), keys_of(*range(8))
    cache.allocate("a", keys, tokens=8, limit=7)
    compute(cache, "a", 0, 8)
    cache.offer("a", keys, computed=8)
    cache.deallocate("a")
    assert cache.match(keys, limit=8) == 8

    assert cache.allocate("b", [], tokens=20, limit=0) == 0
    assert cache.match(keys, limit=8) == 4, "one block had to go"
    assert cache.allocate("c", [], tokens=8, limit=0) is None
    assert not cache.grow("b", 25)
    assert cache.match(keys, limit=8) == 4, "a refusal costs nothing"
    cache.check_integrity()


def test_beginning_a_sequence_does_not_evict_the_cached_blocks_it_reuses() -> None:
    cache, keys = cache_of(20), keys_of(*range(8))
    cache.allocate("a", keys, tokens=8, limit=8)
    compute(cache, "a", 0, 8)
    cache.offer("a", keys, computed=8)
    cache.deallocate("a")
    cache.allocate("c", keys_of(90), tokens=4, limit=0)

    assert cache.allocate("b", keys, tokens=12, limit=8) is None, "two blocks are being read, two are free"
    assert cache.match(keys, limit=8) == 8
    cache.deallocate("c")
    assert cache.allocate("b", keys, tokens=12, limit=8) == 8
    cache.check_integrity()


def test_a_sequence_alone_reuses_less_where_all_of_it_would_leave_no_room() -> None:
    cache, keys = cache_of(16), keys_of(*range(8))
    cache.allocate("a", keys, tokens=8, limit=8)
    compute(cache, "a", 0, 8)
    cache.offer("a", keys, computed=8)
    cache.deallocate("a")

    assert cache.allocate("b", keys, tokens=12, limit=8) == 4, "nobody else will make room"
    cache.check_integrity()
    cache.deallocate("b")
    assert cache.allocate("c", keys, tokens=20, limit=8) is None, "more than the cache has"


def test_offering_to_a_full_cache_keeps_nothing_and_does_not_fail() -> None:
    cache, keys = cache_of(8), keys_of(*range(8))
    cache.allocate("a", keys, tokens=8, limit=7)
    compute(cache, "a", 0, 8)

    cache.offer("a", keys, computed=8)

    assert cache.match(keys, limit=8) == 0
    cache.check_integrity()


def test_discarded_blocks_are_not_found_again() -> None:
    cache, keys = cache_of(100), keys_of(*range(8))
    cache.allocate("a", keys, tokens=8, limit=7)
    compute(cache, "a", 0, 8)
    cache.offer("a", keys, computed=8)

    cache.discard(keys)

    assert cache.match(keys, limit=8) == 0
    cache.check_integrity()


def test_half_of_what_is_cached_is_given_back_the_least_recently_used_first() -> None:
    cache, old, new = cache_of(100), keys_of(*range(8)), keys_of(*range(50, 58))
    for owner, keys in (("a", old), ("b", new)):
        cache.allocate(owner, keys, tokens=8, limit=7)
        compute(cache, owner, 0, 8)
        cache.offer(owner, keys, computed=8)
    block_bytes = LAYERS * 2 * KV_HEADS * BLOCK * HEAD_DIM * 4

    assert cache.shed(0.5) == 2 * block_bytes
    assert (cache.match(old, limit=8), cache.match(new, limit=8)) == (0, 8)
    cache.check_integrity()
    assert [cache.shed(0.5) for _ in range(3)] == [block_bytes, block_bytes, 0]
    cache.check_integrity()


def test_with_reuse_switched_off_no_prefix_is_found_or_cached() -> None:
    cache, keys = cache_of(100, reuse=False), keys_of(*range(8))
    cache.allocate("a", keys, tokens=8, limit=7)
    compute(cache, "a", 0, 8)
    cache.offer("a", keys, computed=8)

    assert cache.allocate("b", keys, tokens=8, limit=7) == 0
    assert cache.pool.cached == 0


def test_releasing_twice_is_harmless() -> None:
    cache = cache_of(10)
    cache.allocate("a", [], tokens=8, limit=0)

    cache.deallocate("a")
    cache.deallocate("a")

    assert cache.pool.free == 2


def test_a_write_past_the_end_of_a_slab_raises_assertion_error() -> None:
    cache = cache_of(4)
    cache.allocate("a", [], tokens=4, limit=0)

    with pytest.raises(AssertionError, match="past the slab's end"):
        cache.slab("a").write(0, 3, torch.zeros(KV_HEADS, 2, HEAD_DIM), torch.zeros(KV_HEADS, 2, HEAD_DIM))
