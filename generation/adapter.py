"""A LoRA adapter: differences of low rank, added to a model's linear layers once, when it is loaded.

LoRA (Hu et al. 2021, arXiv:2106.09685): W + scale · B · A. Merged, it costs a request nothing. The files are
peft's own, so that adapters trained elsewhere load too; only what merging reproduces exactly is accepted.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from generation.config import ADAPTER_FILES
from generation.errors import ModelUnavailable
from generation.linear import LOSSLESS

CONFIGURATION, TENSORS = ADAPTER_FILES

_KEY = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<half>[AB])\.weight")
# Settings of peft that are read here, or that only training needs. Any other setting that is on changes
# what the adapter computes (DoRA, biases, activation tokens …), so it is refused by name.
_UNDERSTOOD = frozenset(
    "peft_type task_type auto_mapping peft_version base_model_name_or_path revision inference_mode "  # noqa: SIM905  # a line each
    "parent_library r lora_alpha use_rslora rank_pattern alpha_pattern target_modules exclude_modules "
    "layers_to_transform layers_pattern lora_dropout init_lora_weights megatron_core loftq_config eva_config "
    "corda_config lora_ga_config qalora_group_size runtime_config ensure_weight_tying".split()
)
# The others (pissa, olora, loftq, …) train beside a changed base model, which is not the one served.
_INITIALISED = (None, True, False, "gaussian", "eva", "orthogonal")


@dataclass(frozen=True, slots=True, eq=False)
class LoRALayerWeights:
    """What one layer's weights [out, in] gain, `scale · b · a`: `a` is [rank, in], `b` is [out, rank]."""

    a: Tensor
    b: Tensor
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Which modules an adapter was trained for, by peft's rules.

    `modules` and `excluded` are ends of names, or one regular expression over whole names; `layers` are the
    only indices meant, None for all, found behind one of `patterns` or behind any name.
    """

    modules: tuple[str, ...] | str
    excluded: tuple[str, ...] | str = ()
    layers: frozenset[int] | None = None
    patterns: tuple[str, ...] = ()

    def __contains__(self, module: str) -> bool:
        if _named(module, self.excluded) or not _named(module, self.modules):
            return False
        if self.layers is None or isinstance(self.modules, str) or module in self.modules:
            return True
        for pattern in self.patterns or (r"[^.]*",):
            if (match := re.match(rf"(?:^|.*?\.){pattern}\.(\d+)\.", module)) is not None:
                return int(match[1]) in self.layers
        return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adapter:
    """Differences by the name of the module they belong to; `name` is for messages."""

    name: str
    targets: Targets
    differences: Mapping[str, LoRALayerWeights] = field(repr=False)


def read_adapter(folder: Path) -> Adapter:
    """Read a peft LoRA adapter: `adapter_config.json` and `adapter_model.safetensors`, never a pickle.

    Raises:
        ModelUnavailable: a file is missing or unreadable, it is no LoRA adapter, or it does more than
            add differences to linear layers.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    name = folder.name
    try:
        settings = json.loads((folder / CONFIGURATION).read_text("utf-8"))
        tensors = load_file(folder / TENSORS)
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The adapter {name!r} cannot be read: its folder must hold {CONFIGURATION} and {TENSORS}."
        ) from error
    try:
        _refuse_what_is_more(settings)
        halves: dict[str, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            match = _KEY.fullmatch(key)
            if match is None or tensor.dim() != 2 or not tensor.is_floating_point():
                raise ValueError(f"{key} is no difference of a linear layer")
            halves.setdefault(match["module"], {})[match["half"]] = tensor
        return Adapter(
            name=name,
            targets=_targets(settings),
            differences={module: _difference(module, pair, settings) for module, pair in halves.items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, re.error, ZeroDivisionError) as error:
        raise ModelUnavailable(f"The adapter {name!r} cannot be used: {_reason(error)}.") from error


def merge_adapter(model: nn.Module, adapter: Adapter) -> int:
    """Add the adapter to `model`'s weights, in place; returns how many layers changed.

    Sums are made in float32 and stored in the weights' own format. Float32 weights that float16 holds
    without loss (`generation.linear.LOSSLESS`) are rounded to what float16 holds: by at most 2⁻¹¹ of each
    number, and the layer is packed like before. Call it before weights are packed or quantised.

    Raises:
        ModelUnavailable: a module is not in the model, lacks its difference, is no plain linear layer,
            shares its weights with another, has another shape, or would hold NaN or infinity. The
            model is unchanged, except for the last of these.
    """
    # a subclass of nn.Linear means something else, as in `replace_linears`
    linears = {name: layer.weight for name, layer in model.named_modules() if type(layer) is nn.Linear}
    uses = Counter(weight.data_ptr() for layer in model.modules() for weight in layer.parameters(recurse=False))
    try:
        _refuse_differing({name for name in linears if name in adapter.targets}, set(adapter.differences))
        for module, change in adapter.differences.items():
            weight, shape = linears[module], (change.b.shape[0], change.a.shape[1])
            if uses[weight.data_ptr()] > 1:
                raise ValueError(f"{module} shares its weights with another layer")
            if tuple(weight.shape) != shape:
                raise ValueError(f"{module} is {_size(weight.shape)} in the model and {_size(shape)} in the adapter")
        for module, change in adapter.differences.items():
            _add(module, linears[module], change)
    except (ValueError, re.error) as error:
        raise ModelUnavailable(f"The adapter {adapter.name!r} does not fit the model: {_reason(error)}.") from error
    return len(adapter.differences)


@torch.no_grad()
def _add(module: str, weight: Tensor, change: LoRALayerWeights) -> None:
    a, b = (half.to(device=weight.device, dtype=torch.float32) for half in (change.a, change.b))
    merged = weight.float() + (b @ a) * change.scale
    largest = float(torch.stack(torch.aminmax(merged)).abs().max())
    if not largest <= torch.finfo(weight.dtype).max:  # also refuses NaN
        raise ValueError(f"the weights of {module} would not be numbers")
    if weight.dtype == torch.float32 and largest <= torch.finfo(torch.float16).max and _fits_half(weight):
        merged = merged.half().float()
    weight.copy_(merged)


def _fits_half(weight: Tensor) -> bool:
    error = (weight.half().float() - weight).norm(dim=1)
    return bool((error <= LOSSLESS * weight.norm(dim=1)).all())


def _refuse_differing(expected: set[str], found: set[str]) -> None:
    if unknown := sorted(found - expected):
        raise ValueError(f"{unknown[0]} is not among the linear layers it is for")
    if missing := sorted(expected - found):
        raise ValueError(f"there is nothing for {missing[0]}")
    if not found:
        raise ValueError("it changes nothing")


def _refuse_what_is_more(settings: Mapping[str, Any]) -> None:
    if settings.get("peft_type") != "LORA":
        raise ValueError("it is no LoRA adapter")
    for key, value in settings.items():
        if key not in _UNDERSTOOD and value and value != "none":
            raise ValueError(f"it uses {key}, which cannot be merged exactly")
    if settings.get("init_lora_weights") not in _INITIALISED:
        raise ValueError(f"init_lora_weights {settings['init_lora_weights']!r} belongs to a changed base model")


def _targets(settings: Mapping[str, Any]) -> Targets:
    def names(key: str) -> tuple[str, ...] | str:
        value = settings.get(key) or ()
        return value if isinstance(value, str) else tuple(map(str, value))

    layers, patterns = settings.get("layers_to_transform"), names("layers_pattern")
    if layers is not None:
        layers = frozenset(map(int, layers if isinstance(layers, list) else [layers])) or None
    return Targets(
        modules=names("target_modules"),
        excluded=names("exclude_modules"),
        layers=layers,
        patterns=(patterns,) if isinstance(patterns, str) else patterns,
    )


def _difference(module: str, pair: Mapping[str, Tensor], settings: Mapping[str, Any]) -> LoRALayerWeights:
    if set(pair) != {"A", "B"}:
        raise ValueError(f"{module} has one half of its difference only")
    a, b = pair["A"], pair["B"]
    rank = int(_by_pattern(settings.get("rank_pattern"), module, settings["r"]))
    if not a.shape[0] == b.shape[1] == rank:
        raise ValueError(f"{module} has rank {a.shape[0]} and {b.shape[1]} where {rank} is declared")
    alpha = float(_by_pattern(settings.get("alpha_pattern"), module, settings["lora_alpha"]))
    # rank-stabilised LoRA (Kalajdzievski 2023, arXiv:2312.03732) divides by the root
    return LoRALayerWeights(a, b, alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank))


def _by_pattern(patterns: Mapping[str, Any] | None, module: str, default: Any) -> Any:
    """The value of the first pattern that ends `module`'s name, as peft looks it up."""
    return next((value for key, value in (patterns or {}).items() if re.match(rf"(.*\.)?({key})$", module)), default)


def _named(module: str, names: tuple[str, ...] | str) -> bool:
    if isinstance(names, str):
        return bool(names) and re.fullmatch(names, module) is not None
    return any(module == name or module.endswith(f".{name}") for name in names)


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def _reason(error: Exception) -> str:
    return str(error) if type(error) is ValueError else f"{CONFIGURATION} is not as peft writes it"
