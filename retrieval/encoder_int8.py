"""Linear layers of an encoder in eight bits, for processors with AVX512-VNNI.

Weights get one symmetric scale per output channel, a layer's input one fixed affine range (static
quantisation, Jacob et al. 2018, arXiv:1712.05877), found by reading a few sample texts in float32. A range
computed per batch would let the texts of a batch change each other's vectors; here only rounding does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Layers of one parent that read the same input, by the names transformers' encoders use.
_SIBLINGS = (("query", "key", "value"), ("q_lin", "k_lin", "v_lin"), ("q_proj", "k_proj", "v_proj"), ("q", "k", "v"))
_TINY = 1e-12
_MIGRATION = 0.7  # share of an input channel's size that moves into its weights
_QUIET = 0.1  # of the mean size: the least size of a channel

# Samples for the ranges: prose, a question, numbers, code, markup, other scripts, short and empty text.
SAMPLES = (
    "The harbour was built in stages between 1871 and 1904, when the town's council borrowed money from three banks "
    "to deepen the channel. Its breakwater, 640 metres long, protects the quays from winter storms out of the "
    "north-west. Fishing declined after the war, and since the 1990s most of the berths have been let to ferries, "
    "sailing clubs and a small yard that repairs wooden boats. The lighthouse keeper's house is a museum today; its "
    "collection of charts, lamps and letters was given by the family of the last keeper, who retired in 1987.",
    "who paid for the new channel and when was it finished?",
    "Patients who took 20 mg of the drug daily had lower blood pressure (mean difference -6.4 mmHg, 95% CI -8.1 to "
    "-4.7, p < 0.001) than those given a placebo, but gene expression in T cells did not change.",
    "To install the client run `pip install acme-client==2.1.0`, then set ACME_URL=https://example.com/v1 and call "
    'client.query({"limit": 10, "filter": ["a", "b"]}) -> list[Row]. See section 4.2 # Errors | code | meaning |',
    "Der Umsatz stieg im Frühjahr um zwölf Prozent. La ville fut fondée en 1203. El río cruza la frontera.",
    "東京は日本の首都です。 Москва является столицей России. القاهرة هي عاصمة مصر. Ἀθῆναι",
    "Revenue 2023 | 1,204.5 | 998.0 | +20.7%",
    "cats",
    "",
)


@dataclass(slots=True)
class _Inputs:
    """The smallest and largest number seen in each input channel, zero included."""

    low: Tensor | None = None
    high: Tensor | None = None

    def include(self, x: Tensor) -> None:
        rows = x.reshape(-1, x.shape[-1])
        low, high = rows.amin(dim=0).clamp_max(0), rows.amax(dim=0).clamp_min(0)
        self.low = low if self.low is None else torch.minimum(self.low, low)
        self.high = high if self.high is None else torch.maximum(self.high, high)


class Int8Linear(nn.Module):
    """y = x Wᵀ + b, optionally through GELU (erf): inputs uint8, weights int8, results float32.

    A few input channels of an encoder are many times larger than the rest. Their size is moved in part
    into the weights before either is rounded (SmoothQuant, Xiao et al. 2023, arXiv:2211.10438).
    Inputs beyond what `inputs` saw are clipped.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, *, inputs: _Inputs, gelu: bool = False) -> None:
        super().__init__()
        assert inputs.low is not None
        assert inputs.high is not None
        self.out_features, self.in_features = weight.shape
        sizes = torch.maximum(inputs.high, -inputs.low)
        # A channel that happened to be quiet must not be blown up, or it would be clipped in other texts.
        sizes = sizes.clamp_min(max(_QUIET * float(sizes.mean()), _TINY))
        smoothing = sizes**_MIGRATION / weight.abs().amax(dim=0).clamp_min(_TINY) ** (1 - _MIGRATION)
        low, high = float((inputs.low / smoothing).min()), float((inputs.high / smoothing).max())
        self._scale = max((high - low) / 255, _TINY)
        self._zero_point = round(min(max(-low / self._scale, 0), 255))
        self._to_levels = 1 / (smoothing * self._scale)
        self._offset = torch.tensor(self._zero_point + 0.5)
        weight = weight.detach() * smoothing
        scales = weight.abs().amax(dim=1).clamp_min(_TINY) / 127
        levels = (weight / scales[:, None]).round().to(torch.int8)
        self._packed = torch.ops.onednn.qlinear_prepack(levels, None)
        self._scales, self._zero_points = scales, torch.zeros(len(scales), dtype=torch.int64)
        self._bias = None if bias is None else bias.detach().float()
        self._post = "gelu" if gelu else "none"

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] float32 to [..., out_features] float32."""
        # Truncation after adding a half rounds.
        levels = torch.addcmul(self._offset, x.reshape(-1, self.in_features), self._to_levels)
        levels = levels.clamp_(0, 255).to(torch.uint8)
        y: Tensor = torch.ops.onednn.qlinear_pointwise(
            levels,
            self._scale,
            self._zero_point,
            self._packed,
            self._scales,
            self._zero_points,
            self._bias,
            1.0,
            0,
            torch.float32,
            self._post,
            [],
            "none",
        )
        return y.reshape(*x.shape[:-1], self.out_features)


class _Siblings:
    """One product for several layers that read the same input; the first one called multiplies for all."""

    def __init__(self, product: Int8Linear, parts: int) -> None:
        self._product, self._parts = product, parts
        self._found: tuple[Tensor, Tensor, int] | None = None  # input, output, columns not yet fetched

    def columns(self, x: Tensor, start: int, stop: int) -> Tensor:
        found = self._found
        y, left = (found[1], found[2]) if found is not None and found[0] is x else (self._product(x), self._parts)
        self._found = (x, y, left - 1) if left > 1 else None
        return y[..., start:stop]


class _Sibling(nn.Module):
    def __init__(self, siblings: _Siblings, start: int, stop: int) -> None:
        super().__init__()
        self._siblings, self._start, self._stop = siblings, start, stop

    def forward(self, x: Tensor) -> Tensor:
        return self._siblings.columns(x, self._start, self._stop)


def supports_int8() -> bool:
    """Whether this processor multiplies bytes fast and without saturation (AVX512-VNNI), and torch has the product."""
    with_vnni = torch.cpu._is_vnni_supported()  # noqa: SLF001 - torch 2.9 has no public name for it
    return with_vnni and hasattr(torch.ops.onednn, "qlinear_pointwise")


def quantise_linears(model: nn.Module, *, read_samples: Callable[[], object]) -> int:
    """Replace the float32 `nn.Linear` layers of `model` in place; returns how many.

    Args:
        model: On the CPU, in float32. Subclasses of `nn.Linear` are not replaced, nor are
            layers that the samples do not reach. Embeddings, norms and attention stay float32.
        read_samples: Runs `model` over representative texts; the inputs it sees set the ranges.
    """
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    with torch.inference_mode(), _watching(layers) as ranges:
        read_samples()
        replaced = 0
        for parent in list(model.modules()):
            replaced += _replace_children(parent, ranges)
    return replaced


@contextmanager
def _watching(layers: list[nn.Linear]) -> Iterator[dict[nn.Linear, _Inputs]]:
    """The range of each layer's inputs, while the samples are read."""
    ranges: dict[nn.Linear, _Inputs] = {layer: _Inputs() for layer in layers}
    hooks = [
        layer.register_forward_pre_hook(lambda module, inputs: ranges[module].include(inputs[0])) for layer in layers
    ]
    try:
        yield ranges
    finally:
        for hook in hooks:
            hook.remove()


def _replace_children(parent: nn.Module, ranges: dict[nn.Linear, _Inputs]) -> int:
    left = {
        name: child
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear) and child in ranges and ranges[child].low is not None
    }
    replaced = len(left)
    for names in _SIBLINGS:
        if all(name in left for name in names):
            _join(parent, {name: left.pop(name) for name in names}, ranges)
    # BERT and its descendants have the activation next to the layer; the product includes it.
    gelu = isinstance(activation := getattr(parent, "intermediate_act_fn", None), nn.Module) and _is_gelu(activation)
    for name, layer in left.items():
        fused = gelu and name == "dense"
        setattr(parent, name, Int8Linear(layer.weight, layer.bias, inputs=ranges[layer], gelu=fused))
        if fused:
            parent.intermediate_act_fn = nn.Identity()
    return replaced


def _join(parent: nn.Module, layers: dict[str, nn.Linear], ranges: dict[nn.Linear, _Inputs]) -> None:
    weights = [layer.weight for layer in layers.values()]
    biases: list[Tensor | None] = [layer.bias for layer in layers.values()]
    joint = None if any(bias is None for bias in biases) else torch.cat([bias for bias in biases if bias is not None])
    # They read the same input, so any one of them has seen its range.
    product = Int8Linear(torch.cat(weights), joint, inputs=ranges[next(iter(layers.values()))])
    siblings = _Siblings(product, len(layers))
    start = 0
    for name, weight in zip(layers, weights, strict=True):
        setattr(parent, name, _Sibling(siblings, start, start + len(weight)))
        start += len(weight)


def _is_gelu(activation: nn.Module) -> bool:
    """Whether it is the erf form, decided by its values, because it has many classes."""
    x = torch.linspace(-4, 4, 33)
    return torch.equal(activation(x), nn.functional.gelu(x))
