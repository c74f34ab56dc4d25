"""generation.linear packs layers that then give the same numbers, row by row, in fewer bytes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from generation.linear import (
    HalfProduct,
    LaidOutProduct,
    Product,
    Sibling,
    Siblings,
    lays_out,
    packs,
    prepare_linears,
    replace_linears,
)
from tests.generation.tiny import CONFIGS, VOCAB, tiny_model

needs_fbgemm = pytest.mark.skipif(not packs(), reason="this build of torch has no FBGEMM")
needs_bfloat16 = pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(),  # noqa: SLF001 - torch has no public name for it
    reason="this processor has no bfloat16 products of oneDNN",
)
PROMPT = torch.arange(3, 40)[None] % VOCAB


def bfloat16_model(family: str) -> Any:
    """A float32 model whose weights are bfloat16 numbers, as most checkpoints' are."""
    return tiny_model(family, attention="eager").bfloat16().float()


def linear_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: layer.weight for name, layer in model.named_modules() if type(layer) is nn.Linear}


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def bfloat16_numbers(*shape: int, seed: int) -> torch.Tensor:
    return numbers(*shape, seed=seed).bfloat16().float()


@needs_fbgemm
@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1, 3), (0, 3), (7, 3), (2, 4, 3)])
def test_a_packed_product_has_the_shape_of_the_plain_one(shape):
    weight, x = bfloat16_numbers(5, 3, seed=1), torch.randn(shape)

    torch.testing.assert_close(HalfProduct(weight, None)(x), functional.linear(x, weight))


@needs_fbgemm
def test_a_row_has_the_same_bits_in_every_batch():
    product = HalfProduct(bfloat16_numbers(33, 64, seed=1), None)
    row = numbers(64, seed=2)
    batches = [product(row.expand(rows, 64).contiguous()) for rows in range(1, 140)]

    assert all(torch.equal(y, batches[0].expand_as(y)) for y in batches)


sizes = st.integers(1, 70)


@needs_fbgemm
@given(rows=sizes, width=sizes, out=sizes, bias=st.booleans(), seed=st.integers(0, 99))
def test_a_packed_product_equals_the_plain_one(rows, width, out, bias, seed):
    weight, x = bfloat16_numbers(out, width, seed=seed), torch.randn(2, rows, width)
    added = torch.randn(out) if bias else None

    y = HalfProduct(weight, added)(x)

    exact = functional.linear(x.double(), weight.double(), None if added is None else added.double())
    scale = (x.double().abs() @ weight.double().abs().T) + 1
    assert y.shape == exact.shape
    assert ((y - exact).abs() <= 1e-5 * scale).all()


@needs_fbgemm
@given(rows=st.integers(2, 130), width=sizes, out=sizes, data=st.data())
def test_a_row_has_the_same_bits_alone_and_among_others(rows, width, out, data):
    product = HalfProduct(bfloat16_numbers(out, width, seed=1), None)
    x = numbers(rows, width, seed=rows)
    start = data.draw(st.integers(0, rows - 1))
    stop = data.draw(st.integers(start + 1, rows))

    assert torch.equal(product(x[start:stop].clone()), product(x)[start:stop])


@needs_fbgemm
@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_every_linear_layer_of_a_model_is_packed_and_its_logits_stay(family):
    model = bfloat16_model(family)
    with torch.inference_mode():
        before = model(PROMPT, use_cache=False).logits
    count = len(linear_weights(model))

    replaced = prepare_linears(model)

    with torch.inference_mode():
        after = model(PROMPT, use_cache=False).logits
    assert replaced == count
    assert not linear_weights(model)
    assert (after - before).norm() <= 1e-5 * before.norm()


@needs_fbgemm
def test_packed_weights_take_half_the_memory_and_the_originals_are_freed():
    model = bfloat16_model("llama")
    originals = list(linear_weights(model).values())
    plain_bytes = sum(weight.nbytes for weight in originals)
    alive = [weakref.ref(weight) for weight in originals]
    del originals

    prepare_linears(model)
    gc.collect()

    assert [ref for ref in alive if ref() is not None] == []
    assert sum(module.weight_bytes for module in model.modules() if isinstance(module, Product)) == plain_bytes // 2


@needs_fbgemm
def test_an_output_layer_tied_to_the_embedding_is_packed_and_the_embedding_stays():
    model = bfloat16_model("llama")
    model.lm_head.weight = model.model.embed_tokens.weight
    embedding = model.model.embed_tokens.weight.detach().clone()
    with torch.inference_mode():
        before = model(PROMPT, use_cache=False).logits

    prepare_linears(model)

    with torch.inference_mode():
        after = model(PROMPT, use_cache=False).logits
    assert isinstance(model.lm_head, HalfProduct)
    assert torch.equal(model.model.embed_tokens.weight, embedding)
    assert (after - before).norm() <= 1e-5 * before.norm()


def test_weights_that_half_precision_would_change_stay_float32_input_major():
    model = tiny_model("qwen2", attention="eager")
    before = {name: weight.detach().clone() for name, weight in linear_weights(model).items()}
    with torch.inference_mode():
        expected = model(PROMPT, use_cache=False).logits

    assert prepare_linears(model) == len(before)

    with torch.inference_mode():
        logits = model(PROMPT, use_cache=False).logits
    after = linear_weights(model)
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) and after[name].t().is_contiguous() for name in before)
    assert (logits - expected).norm() <= 1e-5 * expected.norm()


def test_an_inexact_output_layer_tied_to_the_embedding_keeps_the_layout_the_embedding_reads():
    model = tiny_model("llama", attention="eager")
    model.lm_head.weight = model.model.embed_tokens.weight

    prepare_linears(model)

    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.lm_head.weight.is_contiguous()


@pytest.mark.parametrize("value", [1e5, float("inf"), float("nan"), 1e-9])
def test_a_weight_outside_half_precision_is_not_packed(value):
    layers = nn.Sequential(nn.Linear(4, 4, bias=False))
    layers[0].weight.data = torch.full((4, 4), value)

    prepare_linears(layers)

    assert type(layers[0]) is nn.Linear


def test_other_formats_and_subclasses_are_left_alone():
    class Gate(nn.Linear):
        pass

    half, gate = nn.Linear(8, 8).half(), Gate(8, 8)
    model = nn.Sequential(half, gate)

    assert prepare_linears(model) == 0
    assert model[0] is half
    assert model[1] is gate
    assert half.weight.is_contiguous()
    assert gate.weight.is_contiguous()


@needs_bfloat16
@given(rows=sizes, width=sizes, out=sizes, bias=st.booleans(), seed=st.integers(0, 99))
def test_a_product_laid_out_for_onednn_equals_the_plain_one(rows, width, out, bias, seed):
    weight, x = numbers(out, width, seed=seed).bfloat16(), numbers(2, rows, width, seed=seed + 1).bfloat16()
    added = numbers(out, seed=seed + 2).bfloat16() if bias else None

    y = LaidOutProduct(weight, added)(x)

    exact = functional.linear(x.double(), weight.double(), None if added is None else added.double())
    assert y.dtype == torch.bfloat16
    assert y.shape == exact.shape
    assert ((y - exact).abs() <= exact.abs() / 128 + 1e-3 * (x.double().abs() @ weight.double().abs().T + 1)).all()


@needs_bfloat16
@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1, 3), (0, 3), (1, 0, 3)])
def test_a_laid_out_product_has_the_shape_of_the_plain_one(shape):
    weight, x = numbers(5, 3, seed=1).bfloat16(), torch.randn(shape).bfloat16()

    torch.testing.assert_close(LaidOutProduct(weight, None)(x), functional.linear(x, weight))


@needs_bfloat16
@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_a_bfloat16_model_is_laid_out_where_that_is_faster_and_its_logits_stay(family, monkeypatch):
    model = tiny_model(family, attention="eager").bfloat16()
    monkeypatch.setattr("generation.linear.lays_out", lambda _: True)
    exact = tiny_model(family, attention="eager").bfloat16().float()
    with torch.inference_mode():
        before, expected = model(PROMPT, use_cache=False).logits, exact(PROMPT, use_cache=False).logits
    count = len(linear_weights(model))

    assert prepare_linears(model) == count

    with torch.inference_mode():
        after = model(PROMPT, use_cache=False).logits
    assert not linear_weights(model)
    assert after.dtype == torch.bfloat16
    assert (after - expected).norm() <= 1.2 * (before - expected).norm()


@needs_bfloat16
def test_a_bfloat16_model_stays_as_it_is_where_another_layout_is_no_faster(monkeypatch):
    model = tiny_model("llama", attention="eager").bfloat16()
    before = linear_weights(model)
    monkeypatch.setattr("generation.linear.lays_out", lambda _: False)

    assert prepare_linears(model) == 0

    after = linear_weights(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


@needs_bfloat16
@pytest.mark.parametrize(
    ("one_row", "a_prompt", "verdict"), [(0.5, 0.9, True), (0.89, 1.04, True), (0.95, 0.5, False), (0.5, 1.2, False)]
)
def test_a_layout_is_chosen_by_what_products_take(monkeypatch, one_row, a_prompt, verdict):
    seconds = iter([[1.0, one_row], [2.0, 2 * a_prompt]])
    monkeypatch.setattr("generation.linear.fastest", lambda calls, *, rounds: next(seconds))

    assert lays_out(nn.Sequential(nn.Linear(8, 8)).bfloat16()) is verdict


def test_only_bfloat16_weights_are_laid_out_for_onednn():
    assert not lays_out(nn.Sequential(nn.Linear(8, 8)))
    assert not lays_out(nn.Sequential())


class CountingProduct(Product):
    """A plain product that counts its calls."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight_bytes = weight.nbytes
        self.calls, self._weight, self._bias = 0, weight, bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return functional.linear(x, self._weight, self._bias)


def three_siblings() -> tuple[nn.Module, CountingProduct, dict[str, nn.Linear]]:
    parent = nn.Module()
    originals = {"q_proj": nn.Linear(6, 5), "k_proj": nn.Linear(6, 2, bias=False), "v_proj": nn.Linear(6, 3)}
    for name, layer in originals.items():
        parent.add_module(name, layer)
    replace_linears(parent, CountingProduct, where=lambda _: True)
    sibling = parent.get_submodule("q_proj")
    assert isinstance(sibling, Sibling)
    assert isinstance(sibling.siblings, Siblings)
    assert isinstance(sibling.siblings.product, CountingProduct)
    return parent, sibling.siblings.product, originals


@torch.inference_mode()
def test_siblings_multiply_once_for_one_input():
    parent, product, originals = three_siblings()
    for steps in (1, 2, 3):
        x = torch.randn(1, 4, 6)

        for name in ("q_proj", "k_proj", "v_proj"):
            torch.testing.assert_close(parent.get_submodule(name)(x), originals[name](x))

        assert product.calls == steps


@torch.inference_mode()
@given(calls=st.lists(st.tuples(st.sampled_from(["q_proj", "k_proj", "v_proj"]), st.integers(0, 2)), max_size=12))
def test_siblings_are_right_in_any_order_and_for_any_inputs(calls):
    parent, _, originals = three_siblings()
    inputs = [torch.randn(2, 6) for _ in range(3)]

    for name, which in calls:
        torch.testing.assert_close(parent.get_submodule(name)(inputs[which]), originals[name](inputs[which]))


@torch.inference_mode()
def test_siblings_hold_no_input_once_all_have_been_served():
    parent, _, _ = three_siblings()
    x = torch.randn(2, 6)
    alive = weakref.ref(x)
    for name in ("q_proj", "k_proj", "v_proj"):
        parent.get_submodule(name)(x)

    del x
    gc.collect()

    assert alive() is None


def test_siblings_that_read_inputs_of_different_widths_stay_apart():
    parent = nn.Module()
    parent.add_module("gate_proj", nn.Linear(6, 4))
    parent.add_module("up_proj", nn.Linear(7, 4))

    assert replace_linears(parent, CountingProduct, where=lambda _: True) == 2

    assert isinstance(parent.get_submodule("gate_proj"), CountingProduct)
    assert isinstance(parent.get_submodule("up_proj"), CountingProduct)
