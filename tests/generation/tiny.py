"""Tiny random models and tokenizers, made in memory: nothing is downloaded."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    Phi3Config,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

VOCAB = 320
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer(*, chat_template: str | None = CHATML, bos: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level BPE with ChatML's special tokens and a control token that is not marked special."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - 8, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(["the cat sat on the mat and the hat", "user system assistant"], trainer)
    backend.add_special_tokens(["<|im_start|>", "<|im_end|>", "<s>"])
    backend.add_tokens([AddedToken("<tool_call>", special=False), AddedToken("\n\n", special=False)])
    special = {"eos_token": "<|im_end|>"} | ({"bos_token": "<s>"} if bos else {})
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **special)
    tokenizer.chat_template = chat_template
    return tokenizer


_SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCAB,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
    "tie_word_embeddings": False,  # tied random weights mostly repeat their last token
}
CONFIGS: dict[str, Any] = {
    "llama": lambda: LlamaConfig(**_SHAPE),
    "qwen2": lambda: Qwen2Config(**_SHAPE),
    "mistral": lambda: MistralConfig(**_SHAPE, head_dim=16, sliding_window=11),
    "qwen3": lambda: Qwen3Config(**_SHAPE, head_dim=16),  # normalised queries and keys
    "phi3": lambda: Phi3Config(**_SHAPE),  # one matrix for queries, keys and values
    "olmo2": lambda: Olmo2Config(**_SHAPE),  # norms after attention and MLP
    # attention and MLP side by side, positions in a quarter of each head, biases
    "gpt_neox": lambda: GPTNeoXConfig(**{k: v for k, v in _SHAPE.items() if k != "num_key_value_heads"}),
    # two rotary bases, one sliding layer and one full
    "gemma3": lambda: Gemma3TextConfig(
        **_SHAPE,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=11,
        layer_types=["sliding_attention", "full_attention"],
    ),
    # soft-capped scores, one sliding layer and one full
    "gemma2": lambda: Gemma2Config(
        **_SHAPE, head_dim=16, query_pre_attn_scalar=16, sliding_window=11, attn_logit_softcapping=2.0
    ),
}

_SCALES = {"gpt_neox": 0.25}  # its layer norms and biases drown small weights


def tiny_model(family: str, *, attention: str) -> PreTrainedModel:
    """A float32 model with the same weights at every call, scaled up so that near ties do not occur."""
    state = _weights(family)
    model = AutoModelForCausalLM.from_config(CONFIGS[family](), attn_implementation=attention).eval()
    model.load_state_dict(state)
    assert isinstance(model, PreTrainedModel)
    return model


@cache
def _weights(family: str) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_config(CONFIGS[family]())
    generator = torch.Generator().manual_seed(5)
    state: dict[str, torch.Tensor] = model.state_dict()
    for name, tensor in state.items():
        if tensor.dim() == 2:
            state[name] = _SCALES.get(family, 0.12) * torch.randn(tensor.shape, generator=generator)
    return state
