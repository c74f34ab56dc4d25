"""A GGUF file of a very small model with the tokenizer of Qwen2, made by the library that llama.cpp's own tools use."""

from pathlib import Path

import gguf
import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

WIDTH, HEADS, INNER, CONTEXT = 32, 4, 64, 128
END, END_ID = "<|im_end|>", 258
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"


def made_gguf(file: Path, *, splitter: str = "qwen2", licence: str | None = "apache-2.0") -> Path:
    """Write the file; its tokens are the bytes, one pair of them, and the signs of a turn."""
    tokens = [*sorted(ByteLevel.alphabet()), "ab", "<|im_start|>", END]
    assert tokens[END_ID] == END
    kinds = [gguf.TokenType.NORMAL] * (len(tokens) - 2) + [gguf.TokenType.CONTROL] * 2
    writer = gguf.GGUFWriter(file, "qwen2")
    if licence is not None:
        writer.add_license(licence)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitter)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(END_ID)
    writer.add_chat_template(TEMPLATE)
    random = np.random.default_rng(0)

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.1, shape).astype(np.float32))

    tensor("token_embd.weight", len(tokens), WIDTH)
    tensor("output_norm.weight", WIDTH)
    tensor("output.weight", len(tokens), WIDTH)
    for part, shape in {
        "attn_norm": (WIDTH,),
        "ffn_norm": (WIDTH,),
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH, WIDTH),
        "attn_v": (WIDTH, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }.items():
        tensor(f"blk.0.{part}.weight", *shape)
        if part in {"attn_q", "attn_k", "attn_v"}:
            tensor(f"blk.0.{part}.bias", WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
