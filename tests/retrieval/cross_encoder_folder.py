"""Tiny cross-encoders with random weights, on disk as sentence-transformers saves them."""

from pathlib import Path

WORDS = ["acme", "revenue", "rose", "fell", "in", "spring", "winter", "the", "a", "of", "cats", "dogs"]
LIMIT = 12
"""Tokens of a pair the tiny model reads at most."""


def build_bert(folder: Path, *, labels: int | None = 1, seed: int = 0) -> Path:
    """A BERT of one layer and 16 dimensions with `labels` scores a pair; None: an embedder, without a head."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    torch.manual_seed(seed)
    bare = folder / "bare"
    bare.mkdir(parents=True)
    (bare / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizer(str(bare / "vocab.txt"), model_max_length=LIMIT).save_pretrained(bare)
    config = BertConfig(
        vocab_size=17,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.5,  # a wide spread: two pairs are told apart by more than rounding
    )
    config.num_labels = labels or 1
    if labels is None:
        BertModel(config).save_pretrained(bare)
        return bare
    BertForSequenceClassification(config).save_pretrained(bare)
    CrossEncoder(str(bare), device="cpu").save_pretrained(str(folder / "tiny"), create_model_card=False)
    return folder / "tiny"
