"""The numbers of a model that decide what serving it costs, read from its configuration alone."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What keys and values are made of. `context_window` is in tokens, prompt and output together."""

    layers: int
    kv_heads: int
    head_dim: int
    context_window: int

    @classmethod
    def of(cls, configuration: Any, *, cap: int | None = None) -> "ModelShape":
        """Read a transformers configuration (`PreTrainedConfig`); of several parts, the text model's counts.

        Rotary scalings that depend on the length of what is being read ("dynamic", "longrope") would make
        a sequence's result depend on its neighbours; up to the original length they are constant.

        Args:
            configuration: With every default filled in, as transformers does.
            cap: Most tokens of the context window; None leaves the model's own.

        Raises:
            AttributeError: it does not say how many layers or heads there are.
        """
        text = configuration.get_text_config()
        heads = int(text.num_attention_heads)
        window = int(getattr(text, "max_position_embeddings", 0) or cap or 2048)
        rope = getattr(text, "rope_parameters", None) or {}
        for parameters in (rope, *(by_layer for by_layer in rope.values() if isinstance(by_layer, dict))):
            if parameters.get("rope_type") in ("dynamic", "longrope"):
                window = min(window, int(parameters.get("original_max_position_embeddings", window)))
        return cls(
            layers=int(text.num_hidden_layers),
            kv_heads=int(getattr(text, "num_key_value_heads", None) or heads),
            head_dim=int(getattr(text, "head_dim", None) or text.hidden_size // heads),
            context_window=min(window, cap or window),
        )

    def kv_bytes(self, tokens: int, *, number_bytes: int) -> int:
        """Bytes of the keys and values of `tokens` tokens: 2 · layers · kv heads · head dim · tokens · bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dim * tokens * number_bytes
