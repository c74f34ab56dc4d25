"""generation.quantisation keeps the model's distribution, each row's independence, and leaves no layer out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from generation.errors import ModelUnavailable
from generation.linear import Product
from generation.quantisation import Int8Product, check_device, gguf_file, quantise
from tests.generation.tiny import CONFIGS, VOCAB, tiny_model

has_vnni = torch.cpu._is_vnni_supported()  # noqa: SLF001 - torch 2.9 has no public name for it
needs_vnni = pytest.mark.skipif(not has_vnni, reason="this processor has no AVX512-VNNI")
PROMPT = torch.arange(3, 67)[None] % VOCAB
sizes = st.integers(1, 70)


def log_probabilities(model: nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        output: torch.Tensor = model(PROMPT, use_cache=False).logits[0].log_softmax(-1)
    return output


@given(rows=sizes, width=sizes, out=sizes, bias=st.booleans(), seed=st.integers(0, 99))
def test_an_int8_product_is_off_by_at_most_its_rounding(rows, width, out, bias, seed):
    generator = torch.Generator().manual_seed(seed)
    weight, x = torch.randn(out, width, generator=generator), torch.randn(2, rows, width, generator=generator)
    added = torch.randn(out, generator=generator) if bias else None

    y = Int8Product(weight, added)(x)

    exact = nn.functional.linear(x.double(), weight.double(), None if added is None else added.double())
    half_step_x, half_step_w = x.double().abs().amax(-1) / 254, weight.double().abs().amax(-1) / 254
    bound = (
        half_step_x[..., None] * weight.double().abs().sum(-1)
        + x.double().abs().sum(-1)[..., None] * half_step_w
        + width * half_step_x[..., None] * half_step_w
    )
    assert ((y - exact).abs() <= bound * 1.001 + 1e-5).all()


@given(rows=st.integers(2, 130), width=sizes, out=sizes, data=st.data())
def test_a_row_has_the_same_bits_alone_and_among_others(rows, width, out, data):
    product = Int8Product(torch.randn(out, width), torch.randn(out))
    x = torch.randn(rows, width) * torch.logspace(-3, 3, rows)[:, None]
    start = data.draw(st.integers(0, rows - 1))
    stop = data.draw(st.integers(start + 1, rows))

    assert torch.equal(product(x[start:stop].clone()), product(x)[start:stop])


def test_a_row_of_zeros_gives_the_bias_and_a_row_of_nan_spoils_no_other():
    product = Int8Product(torch.randn(5, 7), torch.arange(5.0))
    x = torch.randn(3, 7)
    expected = product(x[2:])
    x[0], x[1, 3] = 0, float("nan")

    y = product(x)

    assert torch.equal(y[0], torch.arange(5.0))
    assert y[1].isnan().all()
    assert torch.equal(y[2:], expected)


def test_an_output_channel_of_zeros_stays_zero():
    weight = torch.randn(4, 6)
    weight[1] = 0

    assert (Int8Product(weight, None)(torch.randn(3, 6))[:, 1] == 0).all()


@needs_vnni
@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_a_quantised_model_keeps_nearly_the_same_distribution(family):
    model = tiny_model(family, attention="eager")
    expected = log_probabilities(model)

    quantise(model, "int8")

    got = log_probabilities(model)
    divergence = (expected.exp() * (expected - got)).sum(-1).mean()
    assert 0 < divergence < 0.01
    assert not torch.equal(got, expected)


@needs_vnni
@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_every_linear_layer_is_quantised_to_about_a_quarter_of_its_memory(family):
    model = tiny_model(family, attention="eager")
    plain = [module.weight.numel() for module in model.modules() if isinstance(module, nn.Linear)]

    quantise(model, "int8")

    assert not [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    products = [module for module in model.modules() if isinstance(module, Product)]
    assert all(isinstance(product, Int8Product) for product in products)
    assert sum(product.out_features * product.in_features for product in products) == sum(plain)
    assert sum(product.weight_bytes for product in products) < 1.1 * sum(plain)
    # what is left as parameters: embeddings, and vectors such as norms
    assert all(p.dim() == 1 or "embed" in name for name, p in model.named_parameters())


@needs_vnni
def test_an_output_layer_tied_to_the_embedding_leaves_the_embedding_whole():
    model = tiny_model("llama", attention="eager")
    model.lm_head.weight = model.model.embed_tokens.weight
    embedding = model.model.embed_tokens.weight.detach().clone()

    quantise(model, "int8")

    assert isinstance(model.lm_head, Int8Product)
    assert torch.equal(model.model.embed_tokens.weight, embedding)


@needs_vnni
def test_a_bfloat16_model_stays_bfloat16_between_its_layers():
    model = tiny_model("llama", attention="eager").bfloat16()

    quantise(model, "int8")

    with torch.inference_mode():
        assert model(PROMPT, use_cache=False).logits.dtype == torch.bfloat16


def test_four_bits_are_refused_on_a_cpu():
    model = tiny_model("llama", attention="eager")

    with pytest.raises(ModelUnavailable, match="CUDA"):
        quantise(model, "int4")

    assert isinstance(model.lm_head, nn.Linear)


def test_eight_bits_are_refused_on_a_gpu_where_they_would_end_cuda_graphs():
    with pytest.raises(ModelUnavailable, match="slower than native ones on a GPU; take native or 4-bit"):
        check_device(torch.device("cuda"), "int8")

    check_device(torch.device("cuda"), "int4")


@needs_vnni
def test_a_model_without_linear_layers_is_refused():
    with pytest.raises(ModelUnavailable, match="no linear layers"):
        quantise(nn.Sequential(nn.Embedding(4, 4)), "int8")


def test_a_lone_gguf_file_is_found_in_its_folder_or_by_its_own_path(tmp_path):
    (tmp_path / "model.Q4_1.gguf").touch()

    assert gguf_file(tmp_path) == "model.Q4_1.gguf"
    assert gguf_file(str(tmp_path / "model.Q4_1.gguf")) == "model.Q4_1.gguf"


@pytest.mark.parametrize("other", ["model.safetensors", "pytorch_model.bin", "pytorch_model-00001-of-00002.bin"])
def test_other_weights_in_the_folder_go_before_a_gguf_file(tmp_path, other):
    (tmp_path / "model.gguf").touch()
    (tmp_path / other).touch()

    assert gguf_file(tmp_path) is None
    assert gguf_file(tmp_path / other) is None


def test_no_folder_and_no_gguf_file_is_none(tmp_path):
    assert gguf_file(tmp_path) is None
    assert gguf_file("organisation/model") is None


def test_several_gguf_files_are_refused(tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()

    with pytest.raises(ModelUnavailable, match="2 GGUF files"):
        gguf_file(tmp_path)
