"""generation.paged_attention, the reference, equals attention over contiguous keys and values."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.paged_attention import PagedBatch
from generation.paged_cache import PagedTensors
from generation.paged_index import SHORT_QUERIES, Ints, PagedIndex, PagedRow, upload
from tests.generation.paged import Shape, attend_in_steps, expected

torch.set_num_threads(1)

CHUNK = st.sampled_from([1, 1, 2, 5, 15, 16, 17, 32, 48])  # decoding, drafts, exact blocks, prefill
PLANS = st.lists(st.lists(CHUNK, min_size=1, max_size=4), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(
    plan=PLANS,
    group=st.sampled_from([1, 3, 4, 8]),
    head_dim=st.sampled_from([8, 64, 80, 128]),
    block_tokens=st.sampled_from([16, 32]),
    scaling=st.sampled_from([None, 0.3]),
    window=st.sampled_from([None, 1, 7, 16, 40]),
    softcap=st.sampled_from([None, 1.5]),
    block_seed=st.integers(0, 99),
)
def test_steps_over_pages_equal_attention_over_contiguous_keys(
    plan: list[list[int]],
    group: int,
    head_dim: int,
    block_tokens: int,
    scaling: float | None,
    window: int | None,
    softcap: float | None,
    block_seed: int,
) -> None:
    shape = Shape(
        group=group, head_dim=head_dim, block_tokens=block_tokens, scaling=scaling, window=window, softcap=softcap
    )

    outputs = attend_in_steps(shape, plan, kernels=["reference"], block_seed=block_seed)

    for output, wanted in zip(outputs, expected(shape, plan), strict=True):
        torch.testing.assert_close(output, wanted, atol=1e-10, rtol=1e-10)


@settings(deadline=None, max_examples=20)
@given(plan=PLANS, seeds=st.lists(st.integers(0, 999), min_size=2, max_size=2, unique=True))
def test_which_blocks_hold_a_sequence_does_not_matter(plan: list[list[int]], seeds: list[int]) -> None:
    one, other = (attend_in_steps(Shape(), plan, kernels=["reference"], block_seed=seed) for seed in seeds)

    for first, second in zip(one, other, strict=True):
        assert torch.equal(first, second)


def test_attention_does_not_read_blocks_before_the_sliding_window() -> None:
    shape = Shape(window=20)
    query, key, value = shape.random_sequence(70, seed=0)
    tensors = shape.poisoned_tensors(6)
    PagedBatch.build(tensors, [PagedRow(0, 69, 0, [4, 0, 2, 5, 1])]).attend(
        1, query[None, :, :69], key[None, :, :69], value[None, :, :69], scaling=None, window=20, softcap=None
    )
    for block in (4, 0, 2):  # positions 0…47; the last query sees 50…69
        tensors.keys[:, block] = float("nan")
        tensors.values[:, block] = float("nan")

    out = PagedBatch.build(tensors, [PagedRow(0, 1, 69, [4, 0, 2, 5, 1])]).attend(
        1, query[None, :, 69:], key[None, :, 69:], value[None, :, 69:], scaling=None, window=20, softcap=None
    )

    torch.testing.assert_close(out[0, 0], shape.attend_contiguous(query, key, value)[:, 69])


@pytest.mark.parametrize(("window", "softcap"), [(None, None), (20, None), (None, 2.0), (7, 2.0)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_static_reference_equals_attention_over_contiguous_keys(
    window: int | None, softcap: float | None, dtype: torch.dtype
) -> None:
    shape = Shape(window=window, softcap=softcap, scaling=0.3, dtype=dtype)
    plan = [[1, 1, 1, 1], [40, 1, 1, 1], [15, 1, 1], [300, 1]]  # the first block is the emptiest

    outputs = attend_in_steps(shape, plan, kernels=["reference", "static"])

    for output, wanted in zip(outputs, expected(shape, plan), strict=True):
        torch.testing.assert_close(output.double(), wanted, atol=1e-5, rtol=1e-5)


def test_carried_numbers_are_uploaded_in_the_same_copy_as_the_page_index() -> None:
    tensors = tensors_of(8)
    copies: list[tuple[int, int]] = []

    def counted(numbers: Ints, target: Tensor) -> None:
        copies.append((numbers.size, target.data_ptr()))
        upload(numbers, target)

    rows = [PagedRow(0, 1, 20, [3, 1]), PagedRow(1, 2, 3, [0])]
    index = PagedIndex(tensors, rows, reserve_tokens=64, carried=[5, 2**31 - 1], upload=counted)
    assert index.carried.tolist() == [5, 2**31 - 1]
    index.refill([*rows[:1], PagedRow(1, 2, 33, [6, 4, 5])], carried=[7, 8])

    assert index.carried.tolist() == [7, 8]
    assert index.slots.tolist() == [20, 81]
    assert [table.tolist() for table in index.tables] == [[3, 1], [6, 4, 5]]
    assert len(copies) == 2 and len({address for _, address in copies}) == 1
    assert index.blocks[5:].tolist() == [tensors.trash] * 3, "what no row needs is nobody's"
    with pytest.raises(AssertionError, match="another shape"):
        index.refill(rows, carried=[7])


def tensors_of(blocks: int, *, block_tokens: int = 16) -> PagedTensors:
    return PagedTensors(
        layers=2,
        kv_heads=1,
        head_dim=4,
        blocks=blocks,
        block_tokens=block_tokens,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


def test_a_row_is_classed_as_short_by_its_own_number_of_queries() -> None:
    rows = [
        PagedRow(0, 1, 20, [3, 1]),
        PagedRow(1, 1 + SHORT_QUERIES + 1, 0, [0, 2]),
        PagedRow(SHORT_QUERIES + 2, 2 * SHORT_QUERIES + 2, 5, [5, 6]),
    ]

    index = PagedIndex(tensors_of(8), rows)

    # start, queries, past, first entry in blocks, queries of the kind before
    assert index.short.tolist() == [[0, 1, 20, 0, 0], [18, 16, 5, 4, 1]]
    assert index.long.tolist() == [[1, 17, 0, 2, 0]]
    assert index.blocks.tolist() == [3, 1, 0, 2, 5, 6]
    assert index.slots.tolist() == [20, *range(16), 32, *range(85, 96), *range(96, 101)]
    assert index.short_tokens.tolist() == [[0, 20], *[[18 + i, 5 + i] for i in range(16)]]
    assert index.splits == 1


def test_a_refilled_batch_keeps_its_memory_and_equals_a_new_one() -> None:
    shape = Shape()
    tensors = shape.poisoned_tensors(8)
    tensors.keys.normal_()
    tensors.values.normal_()
    padding = PagedRow(0, 1, 0, [tensors.trash]), PagedRow(1, 2, 0, [tensors.trash])
    rows = PagedRow(0, 1, 40, [7, 0, 3]), PagedRow(1, 2, 15, [5])
    index = PagedIndex(tensors, padding, reserve_tokens=64)
    addresses = [tensor.data_ptr() for tensor in (index.slots, index.short, index.short_tokens, index.blocks)]
    query, key, value = (tensor[None] for tensor in shape.random_sequence(2, seed=3))

    index.refill(rows)

    assert addresses == [t.data_ptr() for t in (index.slots, index.short, index.short_tokens, index.blocks)]
    refilled, new = (
        batch.attend(0, query, key, value, scaling=None, window=None, softcap=None)
        for batch in (PagedBatch(tensors, index), PagedBatch.build(tensors, rows))
    )
    assert torch.equal(refilled, new)


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [
        ([], "without rows"),
        ([PagedRow(0, 17, 0, [0])], "too short"),
        ([PagedRow(0, 1, 0, [9])], "does not exist"),
        ([PagedRow(0, 1, 0, [0]), PagedRow(2, 3, 0, [1])], "packed"),
        ([PagedRow(0, 0, 0, [0])], "packed"),
    ],
)
def test_invalid_page_tables_raise_assertion_error(rows: list[PagedRow], mistake: str) -> None:
    with pytest.raises(AssertionError, match=mistake):
        PagedBatch.build(tensors_of(4), rows)


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [
        ([PagedRow(0, 2, 0, [0])], "another shape"),
        ([PagedRow(0, 1, 32, [0, 1, 2])], "more blocks"),
        ([PagedRow(0, 1, 256, list(range(17)))], "longer than the reserve"),
    ],
)
def test_a_refill_beyond_its_room_is_our_own_mistake(rows: list[PagedRow], mistake: str) -> None:
    batch = PagedBatch.build(tensors_of(20), [PagedRow(0, 1, 0, [0])], reserve_tokens=32)

    with pytest.raises(AssertionError, match=mistake):
        batch.refill(rows)
