"""generation.fusing replaces what computes the same, in the families it knows, and nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from generation import fusing
from generation.attention import HeadRotation, Row, SlabBatch
from generation.config import EngineConfig
from generation.fusing import FusedAttention, FusedLayer, FusedMLP, FusedNorm
from generation.kv_cache import Slab
from generation.linear import PlainProduct, Sibling, Siblings, join_linears, prepare_linears
from generation.quantisation import quantise
from generation.weights import LoadedModel, adopt_model
from tests.generation.tiny import CONFIGS, VOCAB, tiny_model

torch.set_num_threads(1)

FUSED = {"llama", "mistral", "qwen2", "qwen3"}
TOKENS = 40


def adopted(family: str, *, fuse: bool = True, dtype: torch.dtype = torch.float32) -> LoadedModel:
    model: Any = tiny_model(family, attention="eager")
    model = model.to(dtype)
    return adopt_model(model, EngineConfig(model="tiny", fuse=fuse, kv_cache_bytes=1 << 20))


@torch.inference_mode()
def logits(loaded: LoadedModel) -> Tensor:
    """[TOKENS, vocab_size], read in two chunks."""
    shape = (loaded.layers, 2, loaded.kv_heads, TOKENS, loaded.head_dim)
    slab = Slab(torch.full(shape, float("nan"), dtype=loaded.dtype))
    ids = torch.arange(7, 7 + TOKENS)[None] % VOCAB
    parts = [
        loaded.model(
            input_ids=ids[:, start:stop],
            position_ids=torch.arange(start, stop)[None],
            use_cache=False,
            past_key_values=None,
            ragged_batch=SlabBatch([Row(0, stop - start, start, slab)]),
        ).logits[0]
        for start, stop in ((0, 15), (15, TOKENS))
    ]
    return torch.cat(parts)


def kinds(model: nn.Module) -> set[type[nn.Module]]:
    return {type(module) for module in model.modules()} & {FusedAttention, FusedLayer, FusedMLP, FusedNorm}


@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_fused_layers_give_the_logits_of_the_models_own(family: str) -> None:
    own, fused = adopted(family, fuse=False), adopted(family)

    assert kinds(own.model) == set()
    whole = {FusedAttention, FusedLayer, FusedMLP, FusedNorm}
    expected = whole if family in FUSED else {FusedNorm} & kinds(fused.model)
    assert kinds(fused.model) == expected
    torch.testing.assert_close(logits(fused), logits(own), atol=2e-4, rtol=1e-4)


def test_layers_stay_where_only_their_sum_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: FusedLayer, hidden_states: Any, **arguments: Any) -> tuple[Tensor, Tensor]:
        stream, normed = self.input_layernorm.added(hidden_states)
        attended, _ = self.self_attn(normed, **arguments)
        return stream, self.mlp(self.post_attention_layernorm((stream, attended)))

    monkeypatch.setattr(FusedLayer, "forward", forgetful)

    assert kinds(adopted("llama").model) == {FusedAttention, FusedMLP, FusedNorm}


@pytest.mark.parametrize("family", sorted(FUSED))
def test_parameters_keep_their_names_and_their_memory(family: str) -> None:
    model: Any = tiny_model(family, attention="eager")
    before = dict(model.named_parameters())

    adopt_model(model, EngineConfig(model="tiny", kv_cache_bytes=1 << 20))

    after = dict(model.named_parameters())
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


@pytest.mark.parametrize("family", sorted(FUSED))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_siblings_of_fused_layers_are_one_product(family: str, dtype: torch.dtype) -> None:
    loaded = adopted(family, dtype=dtype)
    expected = logits(loaded)
    weights = {name: weight for name, weight in loaded.model.named_parameters() if weight.dim() == 2}
    values = {name: weight.detach().clone() for name, weight in weights.items()}

    assert join_linears(loaded.model) == 5 * loaded.layers

    products = [module.product for module in loaded.model.modules() if isinstance(module, Siblings)]
    assert len({id(product) for product in products}) == 2 * loaded.layers
    plain = [product for product in products if isinstance(product, PlainProduct)]
    assert plain == products
    joint = {product.weight.untyped_storage().data_ptr() for product in plain}
    for name, weight in weights.items():
        assert torch.equal(weight, values[name])
        is_sibling = any(part in name for part in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"))
        assert (weight.untyped_storage().data_ptr() in joint) is is_sibling, "a view: no memory of its own"
    model: Any = loaded.model
    layer = model.model.layers[0]
    assert isinstance(layer.self_attn.q_proj, Sibling)
    assert type(layer.self_attn.o_proj) is type(layer.mlp.down_proj) is nn.Linear
    got = logits(loaded)
    assert (got - expected).norm() <= (1e-5 if dtype == torch.float32 else 0.05) * expected.norm()


def test_packed_weights_serve_fused_layers() -> None:
    loaded = adopted("qwen3")
    expected = logits(loaded)

    prepare_linears(loaded.model)

    torch.testing.assert_close(logits(loaded), expected, atol=2e-4, rtol=1e-4)


@pytest.mark.skipif(
    not torch.cpu._is_vnni_supported(),  # noqa: SLF001 - torch 2.9 has no public name for it
    reason="this processor has no AVX512-VNNI",
)
@pytest.mark.parametrize("family", sorted(FUSED))
def test_weights_in_eight_bits_serve_fused_layers(family: str) -> None:
    own, fused = adopted(family, fuse=False), adopted(family)
    exact = logits(own)
    quantise(own.model, "int8")
    quantise(fused.model, "int8")

    assert not [module for module in fused.model.modules() if isinstance(module, nn.Linear)]
    assert (logits(fused) - exact).norm() <= 1.1 * (logits(own) - exact).norm()


@pytest.mark.parametrize(
    ("fused", "wrong"),
    [
        ("FusedNorm", lambda self, x: 1.001 * nn.functional.rms_norm(x, self.weight.shape, self.weight, self.eps)),
        ("FusedMLP", lambda self, x: self.down_proj(self.gate_proj(x) * self.up_proj(x))),
        ("FusedMLP", lambda self, x: torch.full_like(x, float("nan"))),
    ],
)
def test_a_model_stays_as_it_is_where_a_fused_module_computes_something_else(
    fused: str, wrong: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = logits(adopted("llama", fuse=False))
    monkeypatch.setattr(getattr(fusing, fused), "forward", wrong)

    loaded = adopted("llama")

    assert kinds(loaded.model) == set()
    assert "the model's own layers are used" in caplog.text
    assert torch.equal(logits(loaded), expected)


def test_a_model_stays_as_it_is_where_positions_are_applied_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeadRotation, "apply", lambda _, query, key: (query, key))

    assert kinds(adopted("qwen3").model) == set()


def test_a_model_stays_as_it_is_where_a_fused_module_does_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> Tensor:
        raise NotImplementedError("another kind of attention")

    monkeypatch.setattr(FusedAttention, "forward", fails)

    assert kinds(adopted("llama").model) == set()
    assert "a fused layer does not run" in caplog.text


def test_an_mlp_with_another_activation_is_left_alone() -> None:
    model: Any = tiny_model("llama", attention="eager")
    for layer in model.model.layers:
        layer.mlp.act_fn = nn.GELU()

    loaded = adopt_model(model, EngineConfig(model="tiny", kv_cache_bytes=1 << 20))

    assert kinds(loaded.model) == {FusedAttention, FusedNorm}
