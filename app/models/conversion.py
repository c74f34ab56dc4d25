"""Converts llama.cpp's GGUF to a folder that transformers loads: safetensors, tokenizer, chat template.

Runs in a process of its own (`python -m app.models.conversion GGUF FOLDER`), so that its memory is given
back. 4-bit blocks are multiplied out once; nothing is re-quantised.
"""

import json
import os
import struct
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from app.errors import SetupError

_GGUF_STRING = 8  # gguf_metadata_value_type, ggml docs/gguf.md


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
            f"Converting the model was stopped by signal {-finished.returncode}; it needs about 1 GB of memory."
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
    if splitter != "smollm":
        raise ValueError(f"no word splitter is known for the tokenizer {splitter!r}")

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    restore_digit_splitting(tokenizer.backend_tokenizer)

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

    Read from the header's bytes (key, then type, length and text, little-endian), because the library's
    reader takes seconds to go through the vocabulary that follows.

    Raises:
        ValueError: The header has no such entry.
    """
    with gguf.open("rb") as file:
        header = file.read(1 << 20)
    start = header.find(b"tokenizer.ggml.pre")
    if not header.startswith(b"GGUF") or start < 0:
        raise ValueError("the file does not say how its tokenizer splits words")
    start += len(b"tokenizer.ggml.pre")
    kind, length = struct.unpack_from("<IQ", header, start)
    if kind != _GGUF_STRING:
        raise ValueError("the file does not say how its tokenizer splits words")
    return header[start + 12 : start + 12 + length].decode("utf-8")


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


if __name__ == "__main__":
    print(json.dumps(convert(Path(sys.argv[1]), Path(sys.argv[2]))))  # noqa: T201  # the parent reads it
