"""Loads cross-encoders, models that read two texts together."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from retrieval.errors import RetrievalError
from retrieval.weights import digest, fastest_dtype, folder_of, loading, on_gpu

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Dtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]

# Architectures in a cross-encoder's configuration: trained to classify pairs, or to answer yes or no.
_ARCHITECTURES = ("ForSequenceClassification", "ForCausalLM")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """The error type and messages for a model that cannot be loaded; `{name}` stands for the model's name."""

    error: type[RetrievalError]
    no_gpu: str
    missing: str
    no_head: str
    damaged: str


@dataclass(frozen=True, slots=True)
class PairModel:
    """A loaded `CrossEncoder` with its name, the digest of its weights, and its device."""

    model: Any
    name: str
    revision: str
    on_cuda: bool


def load_pair_model(
    model: str, *, device: Device, dtype: Dtype, local_files_only: bool, refusals: Refusals
) -> PairModel:
    """Load a model from a folder or by its Hugging Face id.

    Args:
        model: A folder with a cross-encoder, or an id such as `cross-encoder/ms-marco-MiniLM-L6-v2`.
        device: "auto" takes a GPU when there is one.
        dtype: Of the arithmetic; "auto" is half precision where the hardware multiplies it.
        local_files_only: Never use the network.
        refusals: The error type and messages.

    Raises:
        RetrievalError: `refusals.error`: there is no such model here, it cannot be loaded, or it has no head for pairs.
    """
    import torch
    from sentence_transformers import CrossEncoder

    name = Path(model).name if Path(model).is_dir() else model

    def refused(sentence: str) -> RetrievalError:
        return refusals.error(sentence.replace("{name}", name))

    on_cuda = on_gpu(device, absent=refused(refusals.no_gpu))
    chosen = dtype if dtype != "auto" else fastest_dtype(on_cuda=on_cuda)
    try:
        folder = folder_of(model, local_files_only=local_files_only)
        revision = digest(folder)
    except (OSError, ValueError) as error:
        raise refused(refusals.missing) from error
    with loading(refused(refusals.damaged)):
        if not _has_pair_head(folder):
            # The library would give it a head of random weights and a warning.
            raise refused(refusals.no_head)
        loaded = CrossEncoder(
            str(folder),
            device="cuda" if on_cuda else "cpu",
            local_files_only=local_files_only,
            model_kwargs={"dtype": getattr(torch, chosen)},
        )
    loaded.eval()
    return PairModel(loaded, name, revision, on_cuda)


def _has_pair_head(folder: Path) -> bool:
    """Whether the weights come with a head for pairs: by their architecture, or saved as a cross-encoder."""
    about = folder / "config_sentence_transformers.json"
    if about.is_file():
        kind = json.loads(about.read_text(encoding="utf-8")).get("model_type")
        if kind is not None:
            return bool(kind == "CrossEncoder")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return any(name.endswith(_ARCHITECTURES) for name in config.get("architectures") or ())
