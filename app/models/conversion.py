"""Converts llama.cpp's GGUF to a folder that transformers loads: safetensors, tokenizer, chat template.

Runs in a process of its own (`python -m app.models.conversion GGUF FOLDER`), so that its memory is given
back. 4-bit blocks are multiplied out once; nothing is re-quantised.
"""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from app.errors import SetupError

_GGUF_STRING = 8  # gguf_metadata_value_type, ggml docs/gguf.md
_LENGTH = 8  # bytes of the length before a text
_PREFIX = 4 + _LENGTH  # bytes of a value's type, and of its length
_HEADER = 1 << 20  # the file's facts come before its vocabulary


def convert_in_subprocess(gguf: Path, destination: Path) -> dict[str, str]:
    """Runs `convert` in a new interpreter without network access; returns the library versions.

    Raises:
        SetupError: The conversion failed; the message ends with its own reason.
    """
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    command = [sys.executable, "-P", "-m", "app.models.conversion", str(gguf), str(destination)]
    finished = subprocess.run(  # noqa: S603  # no shell, our own arguments
        command, capture_output=True, text=True, check=False, env=environment
    )
    if finished.returncode < 0:
        raise SetupError(
            f"Converting the model was stopped by signal {-finished.returncode}; "
            f"it needs about {_memory(gguf)} of memory."
        )
    if finished.returncode != 0:
        lines = finished.stderr.strip().splitlines() or ["no reason was given."]
        raise SetupError(f"The model could not be converted: {lines[-1]}")
    versions: dict[str, str] = json.loads(finished.stdout.splitlines()[-1])
    return versions


def convert(gguf: Path, destination: Path) -> dict[str, str]:
    """Write bfloat16 safetensors, config, generation config, tokenizer and chat template to `destination`.

    Returns:
        The versions of the libraries that did it.

    Raises:
        ValueError: The file's tokenizer is of an unsupported kind, or disagrees with the model.
    """
    splitter = word_splitter(gguf)
    if splitter not in _RESTORED:
        known = ", ".join(sorted(_RESTORED))
        raise ValueError(
            f"no word splitter is known for the tokenizer {splitter!r}, only for {known}. Put the file into a folder "
            "with the model's own tokenizer.json, and set FOOTNOTE_GENERATOR to that folder"
        )

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    _RESTORED[splitter](tokenizer.backend_tokenizer)

    model = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config  # the weights are plain now; a loader would look for a quantiser
    tokenizer.model_max_length = model.config.max_position_embeddings
    if not tokenizer.eos_token_id == model.config.eos_token_id == model.generation_config.eos_token_id:
        raise ValueError("tokenizer and model disagree about the end of a turn")
    if not tokenizer.chat_template:
        raise ValueError("the file has no chat template")

    model.save_pretrained(destination)
    tokenizer.save_pretrained(destination)
    return {library: version(library) for library in ("transformers", "torch", "gguf")}


def word_splitter(gguf: Path) -> str:
    """The file's `tokenizer.ggml.pre`: which rule cuts text into words before BPE.

    Raises:
        ValueError: The header has no such entry.
    """
    found = header_text(gguf, "tokenizer.ggml.pre")
    if found is None:
        raise ValueError("the file does not say how its tokenizer splits words")
    return found


def header_text(gguf: Path, key: str) -> str | None:
    """A text in the file's header; None without one.

    Read from the header's bytes (key, then type, length and text, little-endian), because the library's
    reader takes seconds to go through the vocabulary that follows.
    """
    with gguf.open("rb") as file:
        header = file.read(_HEADER)
    start = header.find(struct.pack("<Q", len(key)) + key.encode())
    if not header.startswith(b"GGUF") or start < 0:
        return None
    start += _LENGTH + len(key)
    if len(header) < start + _PREFIX:
        return None
    kind, length = struct.unpack_from("<IQ", header, start)
    if kind != _GGUF_STRING or length > _HEADER:
        return None
    return header[start + _PREFIX : start + _PREFIX + length].decode("utf-8", errors="replace")


def restore_digit_splitting(tokenizer: object) -> None:
    r"""Splits digits before byte-level BPE, as SmolLM's own tokenizer does.

    A GGUF file only names its word splitter (`smollm`) and does not define it;
    transformers takes GPT-2's. Ids would then differ from those the model was trained on wherever two or
    more white-space characters precede a digit (docs/EXPERIMENTS.md). Source: llama.cpp,
    LLAMA_VOCAB_PRE_TYPE_SMOLLM: `\p{N}` first, then GPT-2's pattern.

    Args:
        tokenizer: A `tokenizers.Tokenizer`, changed in place.
    """
    from tokenizers import Tokenizer, pre_tokenizers

    assert isinstance(tokenizer, Tokenizer), "only fast tokenizers come out of a GGUF file"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def restore_normalisation(tokenizer: object) -> None:
    """Composes characters (NFC) before anything else, as the tokenizers of Qwen2 to Qwen3 do.

    A GGUF file does not say so; the rule that splits words is transformers' own for these models.

    Args:
        tokenizer: A `tokenizers.Tokenizer`, changed in place.
    """
    from tokenizers import Tokenizer, normalizers

    assert isinstance(tokenizer, Tokenizer), "only fast tokenizers come out of a GGUF file"
    tokenizer.normalizer = normalizers.NFC()


_RESTORED: Mapping[str, Callable[[object], None]] = {"smollm": restore_digit_splitting, "qwen2": restore_normalisation}
"""What restores a tokenizer, by the name of its word splitter."""


def _memory(gguf: Path) -> str:
    """The memory that a conversion takes, about: the weights as 16-bit numbers, and the libraries."""
    return f"{gguf.stat().st_size * 4 / 1e9 + 1:.0f} GB"


if __name__ == "__main__":
    print(json.dumps(convert(Path(sys.argv[1]), Path(sys.argv[2]))))  # noqa: T201  # the parent reads it
