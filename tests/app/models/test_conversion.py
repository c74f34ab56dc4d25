"""app.models.conversion restores what a GGUF file leaves unsaid, and refuses what it does not know."""

import struct
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from app.models.conversion import header_text, restore_digit_splitting, word_splitter


def gguf(path: Path, *, key: bytes = b"tokenizer.ggml.pre", kind: int = 8, value: bytes = b"smollm") -> Path:
    path.write_bytes(
        b"GGUF"
        + b"\0" * 20
        + struct.pack("<Q", len(key))
        + key
        + struct.pack("<IQ", kind, len(value))
        + value
        + b"tokens" * 9
    )
    return path


def words(tokenizer: Tokenizer, text: str) -> list[str]:
    splitter = tokenizer.pre_tokenizer
    assert splitter is not None
    return [word for word, _ in splitter.pre_tokenize_str(text)]


def test_the_header_names_the_word_splitter(tmp_path: Path) -> None:
    assert word_splitter(gguf(tmp_path / "model.gguf")) == "smollm"


@pytest.mark.parametrize("fault", [{"key": b"tokenizer.ggml.other"}, {"kind": 4}], ids=["absent", "not text"])
def test_a_header_without_it_is_refused(tmp_path: Path, fault: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="does not say how"):
        word_splitter(gguf(tmp_path / "model.gguf", **fault))  # type: ignore[arg-type]  # by name


def test_digits_are_split_off_one_by_one_and_leave_white_space_alone() -> None:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    assert words(tokenizer, "a  12") == ["a", "Ġ", "Ġ12"]

    restore_digit_splitting(tokenizer)

    assert words(tokenizer, "a  12") == ["a", "ĠĠ", "1", "2"]


def test_a_text_that_the_header_lacks_or_cuts_off_is_none(tmp_path: Path) -> None:
    file = gguf(tmp_path / "model.gguf")
    assert header_text(file, "general.license") is None
    file.write_bytes(file.read_bytes()[: -len(b"tokens" * 9 + b"smollm") - 4])
    assert header_text(file, "tokenizer.ggml.pre") is None
