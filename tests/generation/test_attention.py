"""generation.attention equals attention spelled out, whatever the chunks, windows and neighbours."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.attention import Row, SlabBatch, ragged_attention
from generation.kv_cache import Slab

torch.set_num_threads(1)

HEADS, KV_HEADS, HEAD_DIM = 4, 2, 8


class Layer(torch.nn.Module):
    layer_idx = 1


def attend_spelled_out(
    query: Tensor, key: Tensor, value: Tensor, *, scaling: float | None, window: int | None, softcap: float | None
) -> Tensor:
    """[H, S, D] attention of a whole sequence, one query at a time."""
    heads, length, head_dim = query.shape
    out = torch.empty_like(query)
    for head in range(heads):
        shared = head // (heads // key.shape[0])
        for position in range(length):
            first = 0 if window is None else max(0, position - window + 1)
            scores = key[shared, first : position + 1] @ query[head, position]
            scores = scores * (head_dim**-0.5 if scaling is None else scaling)
            if softcap is not None:
                scores = softcap * torch.tanh(scores / softcap)
            out[head, position] = torch.softmax(scores, 0) @ value[shared, first : position + 1]
    return out


def poisoned_slab(capacity: int) -> Slab:
    """Reading a position that was not written shows as NaN."""
    return Slab(torch.full((2, 2, KV_HEADS, capacity, HEAD_DIM), float("nan"), dtype=torch.float64))


def random_sequence(length: int, *, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn((heads, length, HEAD_DIM), generator=generator, dtype=torch.float64)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    return query, key, value


@settings(deadline=None, max_examples=60)
@given(
    chunks=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4),
    scaling=st.sampled_from([None, 0.7]),
    window=st.sampled_from([None, 1, 3, 8]),
    softcap=st.sampled_from([None, 1.5]),
)
def test_ragged_steps_equal_attention_spelled_out(
    chunks: list[list[int]], scaling: float | None, window: int | None, softcap: float | None
) -> None:
    sequences = [random_sequence(sum(sizes), seed=number) for number, sizes in enumerate(chunks)]
    slabs = [poisoned_slab(sum(sizes) + 3) for sizes in chunks]
    outputs: list[list[Tensor]] = [[] for _ in chunks]

    for step in range(max(map(len, chunks))):
        rows, owners = [], []
        queries, keys, values = [], [], []
        start = 0
        for owner, (sizes, (query, key, value)) in enumerate(zip(chunks, sequences, strict=True)):
            if step < len(sizes):
                past, count = sum(sizes[:step]), sizes[step]
                rows.append(Row(start, start + count, past, slabs[owner]))
                owners.append(owner)
                queries.append(query[:, past : past + count])
                keys.append(key[:, past : past + count])
                values.append(value[:, past : past + count])
                start += count
        out, weights = ragged_attention(
            Layer(),
            torch.cat(queries, 1)[None],
            torch.cat(keys, 1)[None],
            torch.cat(values, 1)[None],
            None,
            ragged_batch=SlabBatch(rows),
            scaling=scaling,
            sliding_window=window,
            softcap=softcap,
        )
        assert weights is None
        for row, owner in zip(rows, owners, strict=True):
            outputs[owner].append(out[0, row.start : row.stop])

    tolerance = 1e-9 if softcap is None else 1e-5  # capped scores go through a float32 softmax, as in the models
    for parts, (query, key, value) in zip(outputs, sequences, strict=True):
        expected = attend_spelled_out(query, key, value, scaling=scaling, window=window, softcap=softcap)
        torch.testing.assert_close(torch.cat(parts).transpose(0, 1), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(
    "asked", [{"s_aux": torch.zeros(HEADS)}, {"position_bias": torch.zeros(1)}, {"is_causal": False}]
)
def test_unsupported_attention_arguments_raise_not_implemented(asked: dict[str, object]) -> None:
    query, key, value = (tensor[None] for tensor in random_sequence(2, seed=0))

    with pytest.raises(NotImplementedError):
        ragged_attention(
            Layer(),
            query,
            key,
            value,
            None,
            ragged_batch=SlabBatch([Row(0, 2, 0, poisoned_slab(2))]),
            **asked,  # type: ignore[arg-type]
        )
