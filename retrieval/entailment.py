"""Judges whether a passage entails or contradicts a claim, with a cross-encoder that reads both together.

Models for natural-language inference have labels for entailment and contradiction (Bowman et al. 2015,
arXiv:1508.05326); a reranker has one score, used for entailment, and none for contradiction.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from retrieval.errors import VerifierUnavailable
from retrieval.pair_model import Device, Dtype, Refusals, load_pair_model
from retrieval.types import Judgement

_BATCH = 16  # pairs; an answer's sentence is judged with a handful of passages

_REFUSALS = Refusals(
    error=VerifierUnavailable,
    no_gpu='The verifying model "{name}" is to run on a GPU, but there is none.',
    missing='The verifying model "{name}" is not installed; set FOOTNOTE_VERIFIER to a folder with a cross-encoder, '
    "or leave it empty.",
    no_head='The model "{name}" cannot verify: it has no head that judges pairs.',
    damaged='The verifying model "{name}" cannot be loaded, its files are damaged or incomplete.',
)


class EntailmentModel:
    """Judges claims. Safe to call from several threads: they take turns."""

    def __init__(self, model: Any, *, name: str, revision: str) -> None:
        """Wrap a loaded `CrossEncoder`; most callers want `load`.

        Raises:
            VerifierUnavailable: It gives several scores a pair and none is called entailment.
        """
        self._entailment, self._contradiction = _columns(model, name)
        self._model = model
        self._name = name
        self._revision = revision
        self._lock = Lock()

    @classmethod
    def load(
        cls, model: str, *, device: Device = "auto", dtype: Dtype = "auto", local_files_only: bool = True
    ) -> "EntailmentModel":
        """Load a model from a folder or by its Hugging Face id.

        Args:
            model: A folder with a cross-encoder, or an id such as `cross-encoder/nli-deberta-v3-small`.
            device: "auto" takes a GPU when there is one.
            dtype: Of the arithmetic; "auto" is half precision where the hardware multiplies it.
            local_files_only: Never use the network.

        Raises:
            VerifierUnavailable: There is no such model here, it cannot be loaded, or it judges no pairs.
        """
        loaded = load_pair_model(
            model, device=device, dtype=dtype, local_files_only=local_files_only, refusals=_REFUSALS
        )
        return cls(loaded.model, name=loaded.name, revision=loaded.revision)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._name

    @property
    def revision(self) -> str:
        """First 16 hex digits of the SHA-256 of its weights."""
        return self._revision

    def count_tokens(self, claim: str, passages: Sequence[str]) -> int:
        """Tokens `judge` reads: of every pair, special tokens included, cut where the model cuts, without padding."""
        if not passages:
            return 0
        with self._lock:  # tokenizers keep truncation and padding as state
            features = self._model.preprocess(self._pairs(claim, passages))
        return int(features["attention_mask"].sum())

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        """The judgement of the claim by each passage, in the order of `passages`.

        Raises:
            VerifierUnavailable: The model gave something that is no number (half precision overflows).
        """
        import torch

        if not passages:
            return []
        with self._lock:
            logits = self._model.predict(
                self._pairs(claim, passages),
                batch_size=_BATCH,
                show_progress_bar=False,
                activation_fn=torch.nn.Identity(),
                convert_to_numpy=True,
            )
        rows = np.asarray(logits, dtype=np.float64).reshape(len(passages), -1)
        if not np.isfinite(rows).all():
            raise VerifierUnavailable(f'The verifying model "{self._name}" gave scores that are no numbers.')
        if rows.shape[1] == 1:  # the probability of a match, by the logistic function
            rows = np.concatenate([rows, np.zeros_like(rows)], axis=1)
        exponents = np.exp(rows - rows.max(axis=1, keepdims=True))
        shares = exponents / exponents.sum(axis=1, keepdims=True)
        contradiction = self._contradiction
        return [
            Judgement(float(row[self._entailment]), float(row[contradiction]) if contradiction is not None else 0.0)
            for row in shares
        ]

    def _pairs(self, claim: str, passages: Sequence[str]) -> list[tuple[str, str]]:
        """Orders the pair as in the model's training: premise first, or a reranker's query first."""
        if self._model.num_labels == 1:
            return [(claim, passage) for passage in passages]
        return [(passage, claim) for passage in passages]


def _columns(model: Any, name: str) -> tuple[int, int | None]:
    """The index of the entailment score, and of the contradiction score if the model has one.

    Raises:
        VerifierUnavailable: None is called entailment.
    """
    if model.num_labels == 1:
        return 0, None
    labels = {int(at): str(label).casefold() for at, label in model.config.id2label.items()}
    entailment = [
        at for at, label in labels.items() if label.startswith(("entail", "support")) and not label.startswith("not")
    ]
    if len(entailment) != 1:
        raise VerifierUnavailable(
            f'The model "{name}" gives {model.num_labels} scores a pair and does not say which one is entailment.'
        )
    opposite = [at for at, label in labels.items() if label.startswith(("contradict", "refute"))]
    return entailment[0], opposite[0] if opposite else None
