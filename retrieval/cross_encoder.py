"""The reranker: a sentence-transformers cross-encoder."""

from collections.abc import Iterator, Sequence
from threading import Lock, local
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.errors import RerankerUnavailable
from retrieval.pair_model import Device, Dtype, Refusals, load_pair_model
from retrieval.weights import CUDA_BATCH_TOKENS

if TYPE_CHECKING:
    import torch

# Padded tokens of one batch on a CPU: small enough to waste little on padding.
CPU_BATCH_TOKENS = 1024

_REFUSALS = Refusals(
    error=RerankerUnavailable,
    no_gpu='The reranking model "{name}" is to run on a GPU, but there is none.',
    missing='The reranking model "{name}" is not installed. `footnote models` lists what is; '
    "set FOOTNOTE_RERANKER to a folder with a cross-encoder, or leave it empty to search without one.",
    no_head='The model "{name}" is no reranker: it has no head that scores pairs.',
    damaged='The reranking model "{name}" cannot be loaded, its files are damaged or incomplete. '
    "`footnote models` lists what is installed.",
)


class CrossEncoderReranker:
    """Implements `Reranker`. Safe to call from several threads: they take turns by batch.

    Question and passage are read together, so every word of one attends to every word of the other
    (Nogueira and Cho 2019, "Passage re-ranking with BERT", arXiv:1901.04085).
    """

    def __init__(self, model: Any, *, name: str, revision: str, batch_tokens: int) -> None:
        """Wrap a loaded `CrossEncoder`; most callers want `load`.

        Args:
            model: The model, on its device.
            name: The model's name.
            revision: Identifies its weights.
            batch_tokens: Most tokens of one batch, padding included; a longer pair goes alone.

        Raises:
            RerankerUnavailable: The model gives several scores for a pair.
        """
        if model.num_labels != 1:
            raise RerankerUnavailable(
                f'The reranking model "{name}" gives {model.num_labels} scores a pair; one is needed to order by.'
            )
        self._model = model
        self._name = name
        self._revision = revision
        self._batch_tokens = batch_tokens
        self._lock = Lock()
        self._tokenizing = Lock()  # tokenizers keep truncation and padding as state
        self._counted = local()

    @classmethod
    def load(
        cls,
        model: str,
        *,
        device: Device = "auto",
        dtype: Dtype = "auto",
        local_files_only: bool = True,
    ) -> "CrossEncoderReranker":
        """Load a model from a folder or by its Hugging Face id.

        Args:
            model: A folder with a cross-encoder, or an id such as `cross-encoder/ms-marco-MiniLM-L6-v2`.
            device: "auto" takes a GPU when there is one.
            dtype: Of the arithmetic; "auto" is half precision where the hardware multiplies it.
            local_files_only: Never use the network.

        Raises:
            RerankerUnavailable: There is no such model here, it cannot be loaded, or it is no reranker.
        """
        loaded = load_pair_model(
            model, device=device, dtype=dtype, local_files_only=local_files_only, refusals=_REFUSALS
        )
        return cls(
            loaded.model,
            name=loaded.name,
            revision=loaded.revision,
            batch_tokens=CUDA_BATCH_TOKENS if loaded.on_cuda else CPU_BATCH_TOKENS,
        )

    @property
    def model(self) -> str:
        """The model's name."""
        return self._name

    @property
    def revision(self) -> str:
        """First 16 hex digits of the SHA-256 of its weights."""
        return self._revision

    def count_tokens(self, query: str, passages: Sequence[str]) -> int:
        """Tokens `score` reads: of every pair, special tokens included, cut where the model cuts, without padding."""
        if not passages:
            return 0
        features = self._features(query, passages)
        # Counting precedes scoring the same pairs: the thread need not tokenise twice.
        self._counted.last = (query, tuple(passages), features)
        return int(features["attention_mask"].sum())

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The probability of a match of each passage, in their order, in [0, 1].

        A pair beyond the model's limit is cut, the longer text first.

        Raises:
            RerankerUnavailable: The model's output is not a number (half precision overflows).
        """
        import torch

        if not passages:
            return []
        features = self._taken(query, passages) or self._features(query, passages)
        logits = np.empty(len(passages), dtype=np.float64)
        for rows in self._batches(features["attention_mask"]):
            batch = {name: _rows(value, rows, features["attention_mask"]) for name, value in features.items()}
            with self._lock, torch.inference_mode():
                logits[rows] = self._model(batch)["scores"].float().reshape(-1).cpu().numpy()
        if not np.isfinite(logits).all():
            raise RerankerUnavailable(f'The reranking model "{self._name}" gave scores that are no numbers.')
        # The halves of the logistic function that cannot overflow; its order is the logits'.
        scores = np.where(logits >= 0, 1 / (1 + np.exp(-np.abs(logits))), 1 - 1 / (1 + np.exp(-np.abs(logits))))
        return [float(score) for score in scores]

    def _taken(self, query: str, passages: Sequence[str]) -> dict[str, Any] | None:
        """The features this thread computed last, if they are of these pairs."""
        last = vars(self._counted).pop("last", None)
        return last[2] if last is not None and last[:2] == (query, tuple(passages)) else None

    def _features(self, query: str, passages: Sequence[str]) -> dict[str, Any]:
        """The model's inputs for the pairs: (pairs, longest pair) token ids, mask and other tensors it needs."""
        with self._tokenizing:
            features: dict[str, Any] = self._model.preprocess([(query, passage) for passage in passages])
        device = self._model.device
        return {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}

    def _batches(self, mask: "torch.Tensor") -> Iterator[list[int]]:
        """Rows of pairs of similar length, longest first, each batch within the budget of padded tokens."""
        lengths: list[int] = mask.sum(dim=1).tolist()
        batch: list[int] = []
        for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
            if batch and (len(batch) + 1) * lengths[batch[0]] > self._batch_tokens:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch


def _rows(value: Any, rows: list[int], mask: "torch.Tensor") -> Any:
    """The rows of a (pairs, tokens) feature without the columns that are padding in all of them."""
    if getattr(value, "shape", None) != mask.shape:
        return value
    columns = mask[rows].any(dim=0)
    return value[rows][:, columns]
