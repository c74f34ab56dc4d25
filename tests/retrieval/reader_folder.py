"""A tiny encoder in a folder, for span readers: random, or one whose scores hang on the word alone."""

from pathlib import Path
from typing import Any

WORDS = ["acme", "revenue", "rose", "fell", "spring", "winter", "the", "of", "cats", "dogs", "##s"]
LETTERS = [*"abcdefgh", *(f"##{letter}" for letter in "abcdefgh"), "ᄀ", "##ᅡ", "[", "]"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *WORDS, *LETTERS]


def build_base(
    folder: Path, *, seed: int = 0, hidden: int = 16, positions: int = 512, vocabulary: list[str] | None = None
) -> Path:
    """A BERT of two layers with random weights, wide apart: two spans differ by more than rounding."""
    import torch
    from transformers import BertConfig, BertModel

    vocabulary = vocabulary or VOCABULARY
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    return folder


def tokenizer(vocabulary: list[str]) -> Any:
    """As BERT's, with truncation and padding on, as embedders save theirs."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    made: Any = Tokenizer(WordPiece({word: at for at, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer = BertNormalizer()
    made.pre_tokenizer = BertPreTokenizer()
    made.add_special_tokens([word for word in SPECIAL if word in vocabulary])
    made.enable_truncation(8)
    made.enable_padding()
    return made


def trained(base: Path, *, seed: int = 1) -> Any:
    """A `SpanModel` whose upper layer and head were changed at random, to values that half precision holds."""
    import torch

    from app.tuning.span_reader.training import Recipe, start

    model = start(base, Recipe(frozen_layers=1, seed=seed))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight) * 0.3)
                weight.copy_(weight.half().float())
    return model.eval()


def word_model(base: Path, *, first: str, last: str) -> Any:
    """A `SpanModel` over `base` that points from the word `first` to `last`, wherever they are.

    Nothing is mixed and no place is told from another: a token's state is its word's.
    """
    import torch

    from retrieval.span_model import SpanModel

    model = SpanModel.from_base(base).eval()
    with torch.no_grad():
        encoder = model.encoder
        encoder.embeddings.position_embeddings.weight.zero_()
        encoder.embeddings.token_type_embeddings.weight.zero_()
        for layer in encoder.encoder.layer:
            for dense in (layer.attention.output.dense, layer.output.dense):
                dense.weight.zero_()
                dense.bias.zero_()
        ids = torch.arange(1, len(VOCABULARY))  # padding has no state
        states = encoder(input_ids=ids[:, None]).last_hidden_state[:, 0]
        wanted = torch.full((len(ids), 2), -6.0)
        wanted[VOCABULARY.index("[CLS]") - 1] = 0
        wanted[VOCABULARY.index(first) - 1, 0] = 6
        wanted[VOCABULARY.index(last) - 1, 1] = 6
        model.head.weight.copy_(torch.linalg.lstsq(states, wanted).solution.T)
        model.head.bias.zero_()
        error = (model.head(states) - wanted).abs().max()
    assert error < 1e-2, "more words than dimensions: the scores cannot be met"
    return model
