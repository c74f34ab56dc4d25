"""How large the check is: a model of 8 billion parameters, fewer layers of it in less memory, or a tiny one."""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch

_BESIDE = 6 << 30  # bytes for intermediate results, graphs and their workspaces
_SPARE = 0.9  # of what is free is used


@dataclass(frozen=True)
class Sizes:
    """A model's shape, and the work it is given.

    Attributes:
        shape: Of the model, in the words of transformers' `LlamaConfig`.
        dtype: Of weights, keys and values.
        context: Tokens of a prompt.
        new: Tokens that each row decodes while the clock runs.
        batches: Rows at once, ascending.
        copied: Bytes of the copy by which memory is measured.
        side: Of the square matrices by whose product arithmetic is measured.
    """

    shape: dict[str, int]
    dtype: torch.dtype
    context: int
    new: int
    batches: tuple[int, ...]
    copied: int
    side: int

    @classmethod
    def full(cls, free_bytes: int) -> Self:
        """The shape of Llama 3.1 8B, with as many of its layers as `free_bytes` of the device hold.

        Raises:
            ValueError: not even one fits.
        """
        shape = {
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128_256,
        }
        sizes = cls(shape, torch.bfloat16, 2048, 96, (1, 8, 64), min(4 << 30, free_bytes // 8), 8192)
        layers = int((free_bytes * _SPARE - _BESIDE - sizes.embedding_bytes) // sizes.layer_bytes)
        if layers < 1:
            raise ValueError(f"the check needs more than the {free_bytes / 1e9:.0f} GB that are free on this GPU")
        return replace(sizes, shape=shape | {"num_hidden_layers": min(32, layers)})

    @classmethod
    def tiny(cls) -> Self:
        """What a processor does in some seconds."""
        shape = {
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 1024,
        }
        return cls(shape, torch.float32, 64, 6, (1, 2, 3), 1 << 20, 256)

    @property
    def head_dim(self) -> int:
        """Numbers of a head."""
        return self.shape["hidden_size"] // self.shape["num_attention_heads"]

    @property
    def token_bytes(self) -> int:
        """Of the keys and values of a token, in all layers."""
        return self.shape["num_hidden_layers"] * self._layer_token_bytes

    @property
    def window(self) -> int:
        """Tokens of the longest sequence: a prompt, another question behind it, and what is decoded."""
        return 2 * self.context

    @property
    def cache_tokens(self) -> int:
        """Tokens that the cache holds: every prompt and what follows it, and a prompt more."""
        return max(self.batches) * (self.context + self.new + 16) + 2 * self.window

    @property
    def embedding_bytes(self) -> int:
        """Of the embedding and of the output matrix."""
        return 2 * self.shape["vocab_size"] * self.shape["hidden_size"] * self.dtype.itemsize

    @property
    def layer_bytes(self) -> int:
        """Of a layer's weights, and of its keys and values of `cache_tokens`."""
        hidden, heads = self.shape["hidden_size"], self.shape["num_attention_heads"]
        attention = 2 * hidden * hidden * (heads + self.shape["num_key_value_heads"]) // heads
        weights = attention + 3 * hidden * self.shape["intermediate_size"]
        return weights * self.dtype.itemsize + self.cache_tokens * self._layer_token_bytes

    def configuration(self) -> Any:
        """The `LlamaConfig` of a model of this shape, without a token that ends a text."""
        from transformers import LlamaConfig

        shape: dict[str, Any] = dict(self.shape)
        return LlamaConfig(
            **shape,
            max_position_embeddings=2 * self.window,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=0,
        )

    @property
    def _layer_token_bytes(self) -> int:
        return 2 * self.shape["num_key_value_heads"] * self.head_dim * self.dtype.itemsize
