"""Unmodified models over a paged cache generate what they generate alone."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface

from generation.paged_attention import PagedBatch
from generation.paged_cache import PagedTensors
from generation.paged_index import PagedRow
from tests.generation.tiny import tiny_model

torch.set_num_threads(1)

BLOCK_TOKENS, NEW_TOKENS = 16, 20


def paged_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: None,
    *,
    paged_batch: PagedBatch,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    layer: int = module.layer_idx  # type: ignore[assignment]
    out = paged_batch.attend(layer, query, key, value, scaling=scaling, window=sliding_window, softcap=softcap)
    return out, None


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2"])  # full, sliding window, softcap and both
@torch.inference_mode()
def test_greedy_tokens_over_pages_are_those_of_generate(family: str) -> None:
    AttentionInterface.register("footnote_paged_test", paged_attention)
    model = tiny_model(family, attention="footnote_paged_test")
    config = model.config
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(1, 300, (length,), generator=generator).tolist() for length in (5, 32, 33)]
    tables = [[9, 2, 7, 0], [1, 8, 3, 10], [5, 4, 11, 6]]
    tensors = PagedTensors(
        layers=config.num_hidden_layers,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        blocks=12,
        block_tokens=BLOCK_TOKENS,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    tensors.keys.fill_(float("nan"))
    tensors.values.fill_(float("nan"))
    tokens = [list(prompt) for prompt in prompts]
    computed = [0, 0, 0]

    while any(len(ids) - len(prompt) < NEW_TOKENS for ids, prompt in zip(tokens, prompts, strict=True)):
        ids: list[int] = []
        positions: list[int] = []
        rows: list[PagedRow] = []
        for owner, table in enumerate(tables):
            fed = tokens[owner][computed[owner] :][:20]  # prefill in chunks beside the others' decoding
            rows.append(PagedRow(len(ids), len(ids) + len(fed), computed[owner], table))
            positions += range(computed[owner], computed[owner] + len(fed))
            ids += fed
            computed[owner] += len(fed)
        logits = model(
            input_ids=torch.tensor([ids]),
            position_ids=torch.tensor([positions]),
            use_cache=False,
            paged_batch=PagedBatch.build(tensors, rows),
        ).logits[0]
        for owner, row in enumerate(rows):
            if computed[owner] == len(tokens[owner]):
                tokens[owner].append(int(logits[row.stop - 1].argmax()))

    oracle = tiny_model(family, attention="eager")
    for prompt, found in zip(prompts, tokens, strict=True):
        wanted = oracle.generate(  # type: ignore[operator]
            torch.tensor([prompt]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
        )
        assert found[: len(prompt) + NEW_TOKENS] == wanted[0].tolist()
