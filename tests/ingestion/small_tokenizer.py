"""Tokenizers small enough to train in a test, of the two kinds that embedders use."""

from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

_CORPUS = [
    "The quick brown fox jumps over the lazy dog. Revenue rose by 12% in 2024, said the annual report.",
    "Chapter one: of ducks and lakes. To swim is to paddle about; sun cream is advised.",
    "Der schnelle braune Fuchs springt über den faulen Hund. 日本語の文章です。 быстрая лиса",
] * 4


@cache
def word_piece() -> Tokenizer:
    """As BERT's: lower case, [CLS] and [SEP], a word of more than 100 characters is one [UNK]; truncates at 64."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        _CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=64)
    return tokenizer


@cache
def byte_level() -> Tokenizer:
    """As GPT's: bytes, so that an emoji is several tokens and a blank belongs to the word after it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        _CORPUS,
        trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
    )
    return tokenizer


def token_count(tokenizer: Tokenizer, text: str) -> int:
    """Tokens of `text`, special ones included, never truncated or padded."""
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.no_truncation()
    plain.no_padding()
    return len(plain.encode(text).ids)
