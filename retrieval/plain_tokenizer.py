"""Loads the tokenizer of a model so that it neither cuts nor pads, and takes every text for plain text."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer


def plain_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of the model in `folder`; "[SEP]" or "<|im_end|>" in a text is text, and no mark of the model's.

    Raises:
        ValueError: It is missing or damaged.
    """
    file = folder / "tokenizer.json"
    try:
        tokenizer: Any = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"no tokenizer in {file.name}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    found: Tokenizer = tokenizer
    return found
