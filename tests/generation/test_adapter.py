"""generation.adapter merges what peft would merge, and refuses what merging cannot say."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from generation.adapter import merge_adapter, read_adapter
from generation.config import AdapterConfig, EngineConfig
from generation.errors import ModelUnavailable
from generation.linear import HalfProduct, Siblings, packs
from generation.weights import load_model
from tests.generation.lora import SEVEN, differences, settings, write_adapter
from tests.generation.tiny import tiny_model

IDS = torch.arange(5, 25)[None]


def logits(model: nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=IDS, use_cache=False).logits
    return found


def save_base(folder: Path, *, dtype: torch.dtype = torch.float32) -> Path:
    """The tiny llama on disk, its weights in `dtype`."""
    tiny_model("llama", attention="eager").to(dtype).save_pretrained(folder)  # type: ignore[arg-type]
    return folder


def add_unmerged(model: nn.Module, tensors: dict[str, torch.Tensor], *, scale: float) -> None:
    """The reference: every layer computes x Wᵀ + scale · (x Aᵀ) Bᵀ, the two products apart."""
    for name, layer in model.named_modules():
        a = tensors.get(f"base_model.model.{name}.lora_A.weight")
        if a is None:
            continue
        down, up = a.float().t(), tensors[f"base_model.model.{name}.lora_B.weight"].float().t()

        def beside(_: nn.Module, args: tuple[torch.Tensor], y: torch.Tensor, down=down, up=up) -> torch.Tensor:
            beside_it: torch.Tensor = scale * (args[0] @ down) @ up
            return y + beside_it

        layer.register_forward_hook(beside)


def test_a_merged_model_answers_like_the_model_beside_its_adapter(tmp_path: Path) -> None:
    plain, beside, merged = (tiny_model("llama", attention="eager") for _ in range(3))
    tensors = differences(plain)
    add_unmerged(beside, tensors, scale=2.0)

    assert merge_adapter(merged, read_adapter(write_adapter(tmp_path, tensors=tensors))) == 14

    assert torch.allclose(logits(merged), logits(beside), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(logits(merged), logits(plain), atol=0.1)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")  # peft asks for it
@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_rslora": True},
        {"target_modules": ["q_proj", "down_proj"], "layers_to_transform": [1]},
        {"target_modules": r".*\.layers\.0\.mlp\..*_proj"},
        {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"layers.1.self_attn.k_proj": 3}},
        {"exclude_modules": ["layers.0.self_attn.q_proj"]},
    ],
    ids=["plain", "rank-stabilised", "some-layers", "expression", "patterns", "exclusion"],
)
def test_merging_equals_pefts_own_to_the_bit(tmp_path: Path, family: str, options: dict[str, Any]) -> None:
    peft = pytest.importorskip("peft", reason="peft trains adapters; serving them does without")
    base = tiny_model(family, attention="eager")
    config = peft.LoraConfig(**{"r": 4, "lora_alpha": 6, "target_modules": list(SEVEN), **options})
    theirs = peft.get_peft_model(base, config)
    generator = torch.Generator().manual_seed(7)
    for name, weight in theirs.named_parameters():
        if "lora_" in name:
            weight.data = (0.2 * torch.randn(weight.shape, generator=generator)).half().float()
    theirs.save_pretrained(tmp_path)
    expected = theirs.merge_and_unload().state_dict()

    ours = tiny_model(family, attention="eager")
    merge_adapter(ours, read_adapter(tmp_path))

    merged = ours.state_dict()
    assert all(torch.equal(merged[name], weight) for name, weight in expected.items())
    assert merged.keys() == expected.keys()


def test_weights_that_were_packed_as_halves_still_are(tmp_path: Path) -> None:
    """A checkpoint in bfloat16, run as float32: the merged weights are rounded to float16, and nothing else."""
    if not packs():
        pytest.skip("this build of torch has no FBGEMM")
    base, adapter = save_base(tmp_path / "tiny-llama", dtype=torch.bfloat16), write_adapter(tmp_path / "adapter")
    exact = tiny_model("llama", attention="eager").to(torch.bfloat16).float()  # type: ignore[arg-type]
    rounded = tiny_model("llama", attention="eager").to(torch.bfloat16).float()  # type: ignore[arg-type]
    add_unmerged(exact, differences(exact), scale=2.0)
    before = {name: weight.clone() for name, weight in rounded.state_dict().items()}

    merge_adapter(rounded, read_adapter(adapter))
    loaded = load_model(
        EngineConfig(
            model=str(base), adapter=AdapterConfig(folder=str(adapter), name="a"), device="cpu", dtype="float32"
        )
    )

    tensors = differences(exact)
    for name, weight in rounded.state_dict().items():
        a = tensors.get(f"base_model.model.{name.removesuffix('.weight')}.lora_A.weight")
        if a is None:
            assert torch.equal(weight, before[name])
            continue
        b = tensors[f"base_model.model.{name.removesuffix('.weight')}.lora_B.weight"]
        assert torch.equal(weight, (before[name] + b.float() @ a.float() * 2.0).half().float())
    assert sum(isinstance(module, Siblings) for module in loaded.model.modules()) == 4
    assert sum(isinstance(module, HalfProduct) for module in loaded.model.modules()) == 2 * 4 + 1
    assert (logits(rounded) - logits(exact)).abs().max() < 0.01 * logits(exact).abs().max()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_engine_loads_its_adapter_and_is_named_by_it(tmp_path: Path, dtype: Any) -> None:
    base, folder = save_base(tmp_path / "tiny-llama"), write_adapter(tmp_path / "adapter")
    grounded = AdapterConfig(folder=str(folder), name="grounded")

    plain = load_model(EngineConfig(model=str(base), device="cpu", dtype=dtype)).info
    adapted = load_model(EngineConfig(model=str(base), adapter=grounded, device="cpu", dtype=dtype)).info
    write_adapter(folder, config=settings(lora_alpha=9))
    other = load_model(EngineConfig(model=str(base), adapter=grounded, device="cpu", dtype=dtype)).info

    assert (plain.model, adapted.model) == ("tiny-llama", "tiny-llama+grounded")
    assert len({plain.revision, adapted.revision, other.revision}) == 3


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"peft_type": "IA3"}, "it is no LoRA adapter"),
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens"),
        ({"some_later_invention": {"x": 1}}, "some_later_invention"),
        ({"init_lora_weights": "pissa"}, "a changed base model"),
        ({"r": 8}, "rank 4 and 4 where 8 is declared"),
        ({"lora_alpha": None}, "not as peft writes it"),
        ({"rank_pattern": {"(": 3}}, "not as peft writes it"),
    ],
)
def test_adapter_settings_that_merging_cannot_reproduce_are_refused_by_name(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(ModelUnavailable, match=f"The adapter 'a' cannot be used: .*{said}"):
        read_adapter(write_adapter(tmp_path / "a", config=settings(**changed)))


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("base_model.model.model.embed_tokens.lora_embedding_A", (4, 8)),
        ("base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector", (8,)),
        ("base_model.model.model.layers.0.self_attn.q_proj.lora_B.bias", (8,)),
        ("model.layers.0.self_attn.q_proj.weight", (8, 8)),
        ("base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight", (4, 8)),
    ],
)
def test_a_tensor_that_is_not_half_of_a_difference_is_refused(tmp_path: Path, key: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelUnavailable, match=r"is no difference|one half of its difference"):
        read_adapter(write_adapter(tmp_path, tensors={key: torch.ones(shape)}))


@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.safetensors"])
@pytest.mark.parametrize("content", [None, b"", b"\x80\x04not what it should be"])
def test_a_missing_or_unreadable_file_is_refused_and_no_path_is_told(
    tmp_path: Path, file: str, content: bytes | None
) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)

    with pytest.raises(ModelUnavailable, match=r"its folder must hold adapter_config\.json") as caught:
        read_adapter(folder)

    assert str(tmp_path) not in str(caught.value)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")

    with pytest.raises(ModelUnavailable, match=r"adapter_model\.safetensors"):
        read_adapter(folder)


def without(tensors: dict[str, torch.Tensor], part: str) -> dict[str, torch.Tensor]:
    return {key: tensor for key, tensor in tensors.items() if part not in key}


def wider(tensors: dict[str, torch.Tensor], part: str) -> dict[str, torch.Tensor]:
    return {key: torch.ones(len(t), 65) if part in key and "lora_A" in key else t for key, t in tensors.items()}


@pytest.mark.parametrize(
    ("change", "config", "said"),
    [
        (lambda t: without(t, "layers.1.mlp"), {}, "there is nothing for model.layers.1.mlp.down_proj"),
        (lambda t: t, {"target_modules": ["q_proj"]}, "down_proj is not among the linear layers"),
        (lambda t: wider(t, "layers.1.self_attn.k_proj"), {}, "k_proj is 32×64 in the model and 32×65 in the adapter"),
        (lambda t: {k.replace("layers.1", "layers.2"): v for k, v in t.items()}, {}, "layers.2.* is not among"),
        (lambda _: {}, {"target_modules": ["nothing"]}, "it changes nothing"),
        (lambda t: t, {"target_modules": "("}, "not as peft writes it"),
    ],
)
def test_an_adapter_of_another_shape_is_refused_and_the_model_stays(
    tmp_path: Path, change: Any, config: dict[str, Any], said: str
) -> None:
    model = tiny_model("llama", attention="eager")
    before = logits(model)
    folder = write_adapter(tmp_path / "a", tensors=change(differences(model)), config=settings(**config))

    with pytest.raises(ModelUnavailable, match=f"The adapter 'a' does not fit the model: .*{said}"):
        merge_adapter(model, read_adapter(folder))

    assert torch.equal(logits(model), before)


def test_a_layer_that_shares_its_weights_is_refused_because_both_would_change(tmp_path: Path) -> None:
    model = tiny_model("llama", attention="eager")
    model.lm_head.weight = model.model.embed_tokens.weight
    tensors = differences(model, ("lm_head",))
    folder = write_adapter(tmp_path, tensors=tensors, config=settings(target_modules=["lm_head"]))

    with pytest.raises(ModelUnavailable, match="lm_head shares its weights"):
        merge_adapter(model, read_adapter(folder))


def test_weights_that_would_be_no_numbers_are_refused(tmp_path: Path) -> None:
    model = tiny_model("llama", attention="eager")
    tensors = differences(model)
    tensors["base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"][0, 0] = float("nan")

    with pytest.raises(ModelUnavailable, match="up_proj would not be numbers"):
        merge_adapter(model, read_adapter(write_adapter(tmp_path, tensors=tensors)))


def test_weights_beyond_float16_keep_their_format(tmp_path: Path) -> None:
    model = tiny_model("llama", attention="eager").to(torch.bfloat16).float()  # type: ignore[arg-type]
    tensors = {key: 400 * tensor for key, tensor in differences(model).items()}

    merge_adapter(model, read_adapter(write_adapter(tmp_path, tensors=tensors)))

    weight = model.model.layers[0].mlp.up_proj.weight
    assert bool(weight.isfinite().all())
    assert weight.abs().max() > 65504
