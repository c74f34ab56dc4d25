"""Weights in the GGUF format give the same logits as the weights they were made from."""

from pathlib import Path

import gguf
import torch

from generation.config import EngineConfig
from generation.weights import load_model
from tests.generation.tiny import VOCAB, tiny_model

torch.set_num_threads(1)

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write(model: torch.nn.Module, file: Path) -> None:
    """What llama.cpp's converter writes for a Qwen 2 model."""
    writer = gguf.GGUFWriter(file, "qwen2")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCAB)
    for name, tensor in model.state_dict().items():
        layer, ending = name.removeprefix("model.layers."), name.rpartition(".")[2]
        if layer != name:
            number, _, inner = layer.removesuffix(f".{ending}").partition(".")
            stored = f"blk.{number}.{NAMES[inner]}.{ending}"
        else:
            stored = f"{NAMES[name.removesuffix(f'.{ending}')]}.{ending}"
        writer.add_tensor(stored, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_folder_with_a_gguf_file_gives_the_same_logits_as_the_weights_it_was_made_from(tmp_path: Path) -> None:
    original = tiny_model("qwen2", attention="eager")
    write(original, tmp_path / "tiny.gguf")
    ids = torch.arange(5, 40)[None]

    loaded = load_model(EngineConfig(model=str(tmp_path), device="cpu", dtype="float32", fuse=False))

    with torch.inference_mode():
        loaded.model.set_attn_implementation("eager")
        torch.testing.assert_close(loaded.model(ids).logits, original(ids).logits, rtol=1e-4, atol=1e-4)
    assert loaded.info.context_window == 256
