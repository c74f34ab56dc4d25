"""The engine's configuration, and the shape of a model's KV cache: frozen values with units."""

from dataclasses import dataclass
from typing import Any, Literal

ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")  # peft's names: settings, tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfig:
    """A LoRA adapter to merge into the model: its folder, and the suffix it adds to the model's name."""

    folder: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """One engine on one device.

    Attributes:
        model: A local folder or a Hugging Face id.
        adapter: What is merged into its weights before they are packed or quantised; None leaves them.
        device: Where the model runs; "auto" takes a CUDA device when there is one.
        dtype: The weights' number format. "auto" is bfloat16 where the device multiplies it natively
            (CUDA, CPUs with AMX or AVX512-BF16), else float32. Logits are float32 always.
        max_running: Most sequences in one step.
        max_waiting: Most sequences in the waiting line; the next one is refused.
        max_waiting_tokens: Most prompt tokens waiting; more are refused, unless the queue is empty.
        step_tokens: Most tokens fed to the model in one step; longer prompts are read in chunks.
        context_window: A cap in tokens under the model's own window, prompt and output together.
        kv_cache_bytes: Most bytes of keys and values held at once; None takes half of the memory of a GPU
            that is free once the weights are loaded, and on a CPU `host_memory.default_cache_bytes`.
        block_tokens: Tokens in a block, the unit in which keys and values are given out, kept and found.
        prefix_cache: Keep the blocks of ended sequences, so that prompts which begin alike are read once.
        cuda_graphs: On a CUDA device, launch a step that only decodes as one captured graph; switched off
            automatically where that does not work.
        fuse: Compute decoder layers by fewer operations, for the families that have them; switched off
            automatically where the result is not the same.
        weights: The weights' storage: "native" as `dtype` says, or quantised to 8 or 4 bit integers.
        speculation: Draft tokens and verify several in one step where that pays; the output stays the same.
        draft_model: A smaller model that drafts, a local folder or a Hugging Face id; None drafts by
            looking the text up in the prompt and the output.
        reader_grace_s: Seconds a slow reader may take, after its sequence ended, before the
            sequence is closed in the books without it.
        local_files_only: Never reach for a model hub.
    """

    model: str
    adapter: AdapterConfig | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_running: int = 8
    max_waiting: int = 64
    max_waiting_tokens: int = 131_072
    step_tokens: int = 512
    context_window: int | None = None
    kv_cache_bytes: int | None = None
    block_tokens: int = 16
    prefix_cache: bool = True
    cuda_graphs: bool = True
    fuse: bool = True
    weights: Literal["native", "int8", "int4"] = "native"
    speculation: bool = True
    draft_model: str | None = None
    reader_grace_s: float = 5.0
    local_files_only: bool = True

    def __post_init__(self) -> None:
        if self.max_running < 1:
            raise ValueError(f"max_running must be at least 1 sequence, got {self.max_running}")
        if self.max_waiting < 1:
            raise ValueError(f"max_waiting must be at least 1 sequence, got {self.max_waiting}")
        if self.max_waiting_tokens < 1:
            raise ValueError(f"max_waiting_tokens must be at least 1, got {self.max_waiting_tokens}")
        if self.step_tokens < self.max_running:  # each running sequence must be able to advance in every step
            raise ValueError(f"step_tokens must be at least max_running ({self.max_running}), got {self.step_tokens}")
        if self.context_window is not None and self.context_window < 2:
            raise ValueError(f"context_window must be at least 2 tokens, got {self.context_window}")
        if self.kv_cache_bytes is not None and self.kv_cache_bytes < 1:
            raise ValueError(f"kv_cache_bytes must be at least 1, got {self.kv_cache_bytes}")
        if self.block_tokens < 1:
            raise ValueError(f"block_tokens must be at least 1, got {self.block_tokens}")
        if self.draft_model is not None and not self.speculation:
            raise ValueError("draft_model is of no use without speculation")
        if not self.reader_grace_s >= 0:  # also refuses NaN
            raise ValueError(f"reader_grace_s must be at least 0 seconds, got {self.reader_grace_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The dimensions of a model's keys and values. `context_window` is in tokens, prompt and output together."""

    layers: int
    kv_heads: int
    head_dim: int
    context_window: int

    @classmethod
    def of(cls, configuration: Any, *, cap: int | None = None) -> "ModelShape":
        """Read a transformers configuration (`PreTrainedConfig`); of several parts, the text model's counts.

        Rotary scalings that depend on the length of the sequence ("dynamic", "longrope") would make
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
