"""Loads the model's weights and describes them for the engine."""

import hashlib
import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from generation.accelerator import driver_version, multiplies_bfloat16, why_no_gpu
from generation.adapter import merge_adapter, read_adapter
from generation.attention import IMPLEMENTATION, Row, SlabBatch, register
from generation.blocked_attention import is_faster
from generation.config import ADAPTER_FILES, EngineConfig, ModelShape
from generation.errors import ModelUnavailable
from generation.fusing import fuse
from generation.host_memory import default_cache_bytes, read_host_memory
from generation.kv_cache import Slab
from generation.linear import join_linears, prepare_linears
from generation.types import ModelInfo

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger("footnote.generation")

_PROBE_TOKENS = 12
# Of the norm of what a fused module computes; wrong positions or weights exceed it by far.
_FUSED_TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """A causal language model in evaluation mode, its attention replaced by `generation.attention`.

    `kv_capacity_tokens` is how many tokens of keys and values fit in memory, all sequences together;
    `blocked_attention` whether prompts attend in blocks of queries (`generation.blocked_attention`).
    """

    model: "PreTrainedModel"
    info: ModelInfo
    eos_ids: frozenset[int]
    layers: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    dtype: torch.dtype
    device: torch.device
    kv_capacity_tokens: int
    blocked_attention: bool = False

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.dtype.itemsize


def load_model(config: EngineConfig) -> LoadedModel:
    """Load a model and check that it computes the same through our attention as through its own.

    Raises:
        ModelUnavailable: it is not on this machine, cannot be read, its device is missing, its
            attention cannot be served, or the adapter does not fit it.
    """
    from transformers import AutoModelForCausalLM, GgufConfig

    from generation.quantisation import check_device, gguf_file, quantise

    device = _device(config)
    if config.weights != "native":
        check_device(device, config.weights)  # before gigabytes are read
    dtype = _dtype(config, device)
    name = _name(config.model)
    gguf = gguf_file(config.model) if Path(config.model).is_dir() else None
    packed = {} if gguf is None else {"gguf_file": gguf, "quantization_config": GgufConfig(dequantize=True)}
    try:
        model = AutoModelForCausalLM.from_pretrained(
            config.model,
            dtype=dtype,
            local_files_only=config.local_files_only,
            adapter_kwargs={"local_files_only": config.local_files_only},  # transformers asks the hub for one, else
            attn_implementation="eager",
            **packed,
        )
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"The generator {name!r} is not on this machine or cannot be read; run `footnote models fetch`."
        ) from error
    if gguf is not None and hasattr(model.config, "quantization_config"):
        del model.config.quantization_config  # the weights are plain now
    if config.adapter is not None:
        merge_adapter(model, read_adapter(Path(config.adapter.folder)))
    model = model.to(device)  # type: ignore[arg-type]
    if config.weights != "native" and device.type == "cuda":
        quantise(model, config.weights)
        torch.cuda.empty_cache()  # the cache of keys and values takes half of what the driver says is free
        return adopt_model(model, config)
    loaded = adopt_model(model, config)
    if config.weights == "native":
        prepare_linears(loaded.model)
    else:
        # Afterwards: with the steps of int8 activations our attention and the model's own would differ by more than
        # the check of `adopt_model` allows in float32.
        quantise(loaded.model, config.weights)
    return loaded


def adopt_model(model: "PreTrainedModel", config: EngineConfig) -> LoadedModel:
    """Prepare a model that is in memory already, on its device, in its format, its adapter merged; see `load_model`.

    Raises:
        ModelUnavailable: its attention cannot be served.
    """
    model.eval()  # type: ignore[no-untyped-call]
    device = model.device
    name, dtype = _name(config.model), model.dtype
    shape = ModelShape.of(model.config, cap=config.context_window)
    slab_shape = (shape.layers, 2, shape.kv_heads, _PROBE_TOKENS, shape.head_dim)
    _use_our_attention(model, name, slab_shape=slab_shape)
    fused = config.fuse and fuse(
        model, probe=partial(_probe, model, slab_shape), tolerance=_FUSED_TOLERANCE[model.dtype]
    )
    if fused and device.type == "cuda" and config.weights == "native":
        join_linears(model)
    window_bytes = shape.kv_bytes(shape.context_window, number_bytes=dtype.itemsize)
    budget = _kv_budget(config, device, window_bytes=window_bytes)
    capacity = budget // shape.kv_bytes(1, number_bytes=dtype.itemsize)
    info = ModelInfo(
        model=name if config.adapter is None else f"{name}+{config.adapter.name}",
        revision=_revision(config, model),
        context_window=min(shape.context_window, capacity // config.block_tokens * config.block_tokens),
        device=str(device),
        dtype=str(dtype).removeprefix("torch."),
    )
    return LoadedModel(
        model=model,
        info=info,
        eos_ids=_eos_ids(model),
        layers=shape.layers,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab_size=int(model.config.get_text_config().vocab_size),
        dtype=dtype,
        device=device,
        kv_capacity_tokens=capacity,
        blocked_attention=device.type == "cpu"
        and is_faster(
            heads=int(model.config.get_text_config().num_attention_heads),
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            dtype=dtype,
        ),
    )


def _use_our_attention(model: "PreTrainedModel", name: str, *, slab_shape: tuple[int, ...]) -> None:
    """Switch the attention over, having seen on a few tokens that the result stays the same.

    The flag alone is not enough: models may add biases, share keys between layers, or mix in
    layers that are no attention at all.
    """
    refusal = (
        f"The attention of {name!r} does not go through transformers' attention interface, so it cannot be served."
    )
    if not model.is_backend_compatible():  # type: ignore[no-untyped-call]
        raise ModelUnavailable(refusal)
    register()
    with torch.inference_mode():
        ids = _probe_ids(model)
        expected = model(input_ids=ids, use_cache=False).logits[0, -1].float()
        model.set_attn_implementation(IMPLEMENTATION)
    try:
        got = _probe(model, slab_shape)
    except (RuntimeError, TypeError, AttributeError, IndexError, NotImplementedError) as error:
        raise ModelUnavailable(refusal) from error
    # A constant added to all logits changes nothing. Wrong attention is off by a large part of the whole.
    expected = expected - expected.mean()
    if not bool((got - expected).norm() <= _tolerance(model) * expected.norm()):  # also refuses NaN
        raise ModelUnavailable(refusal)


def _tolerance(model: "PreTrainedModel") -> float:
    """Of the norm of the logits: what their format's rounding may change."""
    return 1e-3 if model.dtype == torch.float32 else 0.1


def _probe_ids(model: "PreTrainedModel") -> torch.Tensor:
    """[1, _PROBE_TOKENS] token ids, any."""
    return torch.arange(_PROBE_TOKENS, device=model.device)[None] % int(model.config.get_text_config().vocab_size)


@torch.inference_mode()
def _probe(model: "PreTrainedModel", slab_shape: tuple[int, ...]) -> torch.Tensor:
    """[vocab_size] float32, their mean taken away: the logits after the probe's tokens, by our attention."""
    device, ids = model.device, _probe_ids(model)
    slab = Slab(torch.zeros(slab_shape, dtype=model.dtype, device=device))
    half = _PROBE_TOKENS // 2
    for start in (0, half):  # two chunks, so that the second one reads the cache
        logits: torch.Tensor = model(
            input_ids=ids[:, start : start + half],
            position_ids=torch.arange(start, start + half, device=device)[None],
            use_cache=False,
            past_key_values=None,
            logits_to_keep=torch.tensor([half - 1], device=device),
            ragged_batch=SlabBatch([Row(0, half, start, slab)]),
        ).logits
    last = logits[0, -1].float()
    return last - last.mean()


def _name(model: str) -> str:
    return Path(model).name if Path(model).is_dir() else model


def _device(config: EngineConfig) -> torch.device:
    if config.device == "cpu":
        return torch.device("cpu")
    why = why_no_gpu()
    if why is None:
        return torch.device("cuda")
    if config.device == "cuda":
        raise ModelUnavailable(f"The device is set to cuda, but torch sees no GPU. {why}")
    if driver_version() is not None:
        logger.warning("the generator runs on the CPU, although this machine has an NVIDIA driver: %s", why)
    return torch.device("cpu")


def _dtype(config: EngineConfig, device: torch.device) -> torch.dtype:
    if config.dtype != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[config.dtype]
    return torch.bfloat16 if device.type == "cuda" or multiplies_bfloat16() else torch.float32


def _kv_budget(config: EngineConfig, device: torch.device, *, window_bytes: int) -> int:
    if config.kv_cache_bytes is not None:
        return config.kv_cache_bytes
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) // 2
    return default_cache_bytes(read_host_memory(), window_bytes=window_bytes)


def _eos_ids(model: "PreTrainedModel") -> frozenset[int]:
    """Every id that ends a sequence, by the generation settings or else by the model's configuration."""
    eos = getattr(model.generation_config, "eos_token_id", None)
    if eos is None:
        eos = model.config.get_text_config().eos_token_id
    if eos is None:
        return frozenset()
    return frozenset(map(int, eos)) if isinstance(eos, list | tuple) else frozenset((int(eos),))


def _revision(config: EngineConfig, model: "PreTrainedModel") -> str:
    """12 hexadecimal digits that change with the configuration, the weight files (by name and size) or the adapter."""
    digest = hashlib.sha256(model.config.to_json_string(use_diff=False).encode())
    digest.update(str(getattr(model.config, "_commit_hash", None)).encode())
    folder = Path(config.model)
    if folder.is_dir():
        for file in sorted([*folder.glob("*.safetensors"), *folder.glob("*.gguf")]):
            digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        manifest = folder / "footnote-model.json"
        if manifest.is_file():
            digest.update(manifest.read_bytes())
    if config.adapter is not None:
        for name in ADAPTER_FILES:
            digest.update((Path(config.adapter.folder) / name).read_bytes())
    return digest.hexdigest()[:12]
