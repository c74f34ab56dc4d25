"""A tiny language model in a folder, and a judge trained from it at random."""

from pathlib import Path
from typing import Any

_TEXT = (
    "Question : Document Before Answer Correct the plant in Oslo closed opened on 4 May 5 June when did it close who "
    "revenue rose fell . ? what colour is thing a report of Acme"
)
WORDS = _TEXT.split()
SPECIAL = ["<unk>", "<|im_start|>", "<|im_end|>"]


def build_language_model(folder: Path, *, layers: int = 4, seed: int = 0) -> Path:
    """A Llama of `layers` layers with random weights, wide apart, and a tokenizer that truncates and pads."""
    import torch
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    vocabulary = [*SPECIAL, *dict.fromkeys(WORDS), "\n"]
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=2048,
        initializer_range=0.4,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    made: Any = Tokenizer(models.WordLevel({word: at for at, word in enumerate(vocabulary)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|[^\w\s]|\w+|<\|\w+\|>| "), "isolated")
    made.add_special_tokens(SPECIAL)
    made.enable_truncation(8)
    made.enable_padding()
    made.save(str(folder / "tokenizer.json"))
    return folder


def build_judge(folder: Path, base: Path, *, layers: int = 3, seed: int = 1) -> Path:
    """A judge of the base's first `layers` layers whose changes are random."""
    import torch

    from app.tuning.candidate_judge.model import JudgeModel
    from app.tuning.candidate_judge.publish import save_judge

    torch.manual_seed(seed)
    model = JudgeModel.from_base(base, rank=2, half=False, layers=layers)
    with torch.no_grad():
        for weight in model.trained().values():
            weight.normal_(std=0.3)
    save_judge({name: weight.half().float() for name, weight in model.trained().items()}, folder)
    return folder
