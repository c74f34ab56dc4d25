"""generation.blocked_attention equals torch's attention, whatever the heads, offsets, windows and neighbours."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from generation import blocked_attention
from generation.attention import Row, SlabBatch
from generation.blocked_attention import attend_in_blocks, fastest, is_faster
from generation.kv_cache import Slab

torch.set_num_threads(1)


def sequence(heads: int, kv_heads: int, length: int, head_dim: int, *, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Queries as the models lay them out, keys and values; keys have a large part in common, as Qwen2's have."""
    generator = torch.Generator().manual_seed(length)
    query = torch.randn(1, length, heads, head_dim, generator=generator, dtype=torch.float64).transpose(1, 2)
    keys, values = torch.randn(2, kv_heads, length, head_dim, generator=generator, dtype=torch.float64)
    keys += 8 * torch.randn(kv_heads, 1, head_dim, generator=generator, dtype=torch.float64)
    return query.to(dtype), keys.to(dtype), values.to(dtype)


def reference(query: Tensor, keys: Tensor, values: Tensor, *, past: int, scaling: float, window: int | None) -> Tensor:
    """[1, n, heads, head_dim] float64: torch's attention of the same numbers."""
    queries, positions = torch.arange(past, keys.shape[1])[:, None], torch.arange(keys.shape[1])
    visible = positions <= queries
    if window is not None:
        visible &= positions > queries - window
    attended = scaled_dot_product_attention(
        query.double(), keys[None].double(), values[None].double(), attn_mask=visible, scale=scaling, enable_gqa=True
    )
    return attended.transpose(1, 2)


def attend(query: Tensor, keys: Tensor, values: Tensor, *, past: int, window: int | None = None) -> Tensor:
    return attend_in_blocks(query[:, :, past:], keys, values, past=past, scaling=0.2, window=window)


@settings(deadline=None, max_examples=40)
@given(
    group=st.sampled_from([1, 3, 7]),
    kv_heads=st.integers(1, 3),
    head_dim=st.sampled_from([8, 24, 64, 128]),
    past=st.integers(0, 200),
    count=st.integers(1, 200),
    window=st.sampled_from([None, 1, 5, 64, 100, 500]),
)
def test_in_float64_it_is_attention_spelled_out(
    group: int, kv_heads: int, head_dim: int, past: int, count: int, window: int | None
) -> None:
    query, keys, values = sequence(group * kv_heads, kv_heads, past + count, head_dim, dtype=torch.float64)

    got = attend(query, keys, values, past=past, window=window)

    expected = reference(query[:, :, past:], keys, values, past=past, scaling=0.2, window=window)
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=1e-10)


def as_the_models(query: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """[1, n, heads, head_dim]: the attention of transformers' models ("eager"), scores in the format of the queries."""
    groups = query.shape[1] // keys.shape[0]
    keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
    scores = (query[0] @ keys.transpose(1, 2) * 0.2).masked_fill(~visible, float("-inf"))
    return (scores.softmax(-1, dtype=torch.float32).to(query.dtype) @ values).transpose(0, 1)[None]


@pytest.mark.parametrize("group", [1, 3, 7])
@pytest.mark.parametrize("head_dim", [64, 80, 128])
@pytest.mark.parametrize(("past", "window"), [(0, None), (300, None), (300, 128)])
def test_in_bfloat16_it_is_nearer_to_the_exact_result_than_the_models_own(
    group: int, head_dim: int, past: int, window: int | None
) -> None:
    query, keys, values = sequence(2 * group, 2, past + 200, head_dim, dtype=torch.bfloat16)
    exact = reference(query[:, :, past:], keys, values, past=past, scaling=0.2, window=window)
    visible = torch.arange(past + 200) <= torch.arange(past, past + 200)[:, None]
    if window is not None:
        visible &= torch.arange(past + 200) > torch.arange(past, past + 200)[:, None] - window
    models = as_the_models(query[:, :, past:], keys, values, visible)

    got = attend(query, keys, values, past=past, window=window)

    assert got.dtype == torch.bfloat16
    assert (got.double() - exact).norm() < (models.double() - exact).norm()
    assert (got.double() - exact).norm() <= 0.02 * exact.norm()


def test_keys_with_much_in_common_lose_no_digits_of_their_scores() -> None:
    query, keys, values = sequence(2, 2, 200, 64, dtype=torch.bfloat16)
    far = (keys.float() + 200 * torch.sign(torch.randn(64, generator=torch.Generator().manual_seed(1)))).bfloat16()
    exact = reference(query, far, values, past=0, scaling=0.2, window=None)

    got = attend(query, far, values, past=0)

    assert (got.double() - exact).norm() <= 0.02 * exact.norm()


def test_what_comes_after_a_query_or_was_never_written_is_not_read() -> None:
    query, keys, values = sequence(3, 1, 300, 16, dtype=torch.float64)
    slab = Slab(torch.full((1, 2, 1, 400, 16), float("nan"), dtype=torch.float64))
    slab.write(0, 0, keys[:, :100], values[:, :100])
    batch = SlabBatch([Row(0, 200, 100, slab)], blocked=True)

    got = batch.attend(
        0, query[:, :, 100:], keys[None, :, 100:], values[None, :, 100:], scaling=0.2, window=None, softcap=None
    )

    expected = reference(query[:, :, 100:], keys, values, past=100, scaling=0.2, window=None)
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=1e-10)


def ragged(rows: Sequence[tuple[int, int]], *, blocked: bool, window: int | None) -> tuple[Tensor, Tensor]:
    """What rows of (past, queries) attend to in one step, and what each should."""
    parts, slabs, start, news = [], [], 0, []
    for past, count in rows:
        query, keys, values = sequence(6, 2, past + count, 16, dtype=torch.float64)
        slab = Slab(torch.full((1, 2, 2, past + count + 5, 16), float("nan"), dtype=torch.float64))
        slab.write(0, 0, keys[:, :past], values[:, :past])
        slabs.append(Row(start, start + count, past, slab))
        start += count
        news.append((query[:, :, past:], keys[None, :, past:], values[None, :, past:]))
        parts.append(reference(query[:, :, past:], keys, values, past=past, scaling=0.2, window=window))
    query, key, value = (torch.cat(tensors, 2) for tensors in zip(*news, strict=True))
    got = SlabBatch(slabs, blocked=blocked).attend(0, query, key, value, scaling=0.2, window=window, softcap=None)
    return got, torch.cat(parts, 1)


@pytest.mark.parametrize("window", [None, 40])
def test_rows_of_a_step_attend_each_to_itself(window: int | None) -> None:
    got, expected = ragged([(30, 1), (0, 130), (90, 65), (200, 9), (7, 100)], blocked=True, window=window)

    torch.testing.assert_close(got, expected, atol=1e-9, rtol=1e-9)


def test_only_prompts_attend_in_blocks_and_only_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def noting(query: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        seen.append(query.shape[2])
        return attend_in_blocks(query, *args, **kwargs)

    monkeypatch.setattr("generation.attention.attend_in_blocks", noting)
    rows = [(30, 1), (0, 130), (200, 9), (7, 65), (7, 64)]

    ragged(rows, blocked=True, window=None)
    assert seen == [130, 65]

    ragged(rows, blocked=False, window=None)
    assert seen == [130, 65]


def test_a_softcap_is_left_to_the_attention_that_has_it() -> None:
    slab = Slab(torch.zeros(1, 2, 1, 100, 8))
    query, keys, values = sequence(1, 1, 100, 8, dtype=torch.float32)
    attended = [
        SlabBatch([Row(0, 100, 0, slab)], blocked=blocked).attend(
            0, query, keys[None], values[None], scaling=1.0, window=None, softcap=0.5
        )
        for blocked in (True, False)
    ]

    assert torch.equal(*attended)


def choice(monkeypatch: pytest.MonkeyPatch, seconds: Sequence[float]) -> bool:
    """The verdict where torch's and ours take these seconds."""

    def timed(calls: Sequence[Callable[[], Tensor]], *, rounds: int) -> list[float]:
        assert len(calls) == 2
        assert rounds > 1
        return list(seconds)

    monkeypatch.setattr(blocked_attention, "fastest", timed)
    return is_faster(heads=6, kv_heads=2, head_dim=16, dtype=torch.bfloat16)


def test_blocks_are_chosen_where_they_take_clearly_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choice(monkeypatch, (1.0, 0.5))
    assert not choice(monkeypatch, (1.0, 0.95))
    assert not choice(monkeypatch, (1.0, 2.0))


def test_blocks_are_not_chosen_where_they_compute_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(query: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return 1.1 * attend_in_blocks(query, *args, **kwargs)

    monkeypatch.setattr(blocked_attention, "attend_in_blocks", wrong)

    assert not choice(monkeypatch, (1.0, 0.5))


def test_calls_are_timed_in_turn_without_gradients_and_other_threads_keep_their_cores() -> None:
    calls: list[str] = []
    cores = torch.get_num_threads()

    def call(name: str) -> Tensor:
        assert torch.is_inference_mode_enabled()
        calls.append(name)
        return torch.zeros(1)

    seconds = fastest([lambda: call("a"), lambda: call("b")], rounds=2)

    assert calls == ["a", "b"] * 3
    assert len(seconds) == 2
    assert all(0 <= one < 60 for one in seconds)
    assert torch.get_num_threads() == cores
