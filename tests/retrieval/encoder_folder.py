"""A tiny embedding model with random weights in a folder, and what sentence-transformers makes of it."""

from pathlib import Path
from typing import Any

WORDS = ["acme", "revenue", "rose", "fell", "in", "spring", "winter", "the", "a", "of", "cats", "dogs"]
PROMPT_WORDS = ["query", "passage", ":"]
TEXTS = ["acme revenue rose in spring", "cats", "the dogs of acme " * 9, "", "revenue fell", "a cats dogs"]


def build_tiny_model(
    folder: Path,
    *,
    prompts: dict[str, str] | None = None,
    default: str | None = None,
    truncate_dim: int | None = None,
    seed: int = 0,
) -> None:
    """A sentence-transformers folder: one BERT layer of 16 dimensions, 12 tokens at most."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(seed)
    bare = folder / "bare"
    bare.mkdir(parents=True)
    (bare / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *PROMPT_WORDS]))
    BertTokenizer(str(bare / "vocab.txt")).save_pretrained(bare)
    config = BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    BertModel(config).save_pretrained(bare)
    transformer = Transformer(str(bare), max_seq_length=12)
    model = SentenceTransformer(
        modules=[transformer, Pooling(16), Normalize()],
        prompts=prompts,
        default_prompt_name=default,
        truncate_dim=truncate_dim,
        device="cpu",
    )
    model.save(str(folder / "tiny"))


def reference(folder: Path, texts: list[str], **options: Any) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts, **options)
