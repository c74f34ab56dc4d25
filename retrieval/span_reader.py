"""The span reader: points at the answer in each passage, with the probability that it holds one."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Literal, TypeAlias

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from retrieval.errors import ReaderUnavailable
from retrieval.plain_tokenizer import plain_tokenizer
from retrieval.reader_config import READER_FILES, UNCALIBRATED, Calibration
from retrieval.span_model import WINDOW_TOKENS, SpanModel, Window, best_spans, most_evidence, windows_of
from retrieval.types import Pointer, Span
from retrieval.weights import CUDA_BATCH_TOKENS, digest, fastest_dtype, loading, on_gpu, save_halves

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Dtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]

# Padded tokens of one batch, as in `retrieval.encoder`. On a CPU a small one is as fast, for it fits the cache, and a
# reading that is stopped ends with its batch.
CPU_BATCH_TOKENS = 1024

_SPECIAL = ("[CLS]", "[SEP]")
_HEAD = {"head.weight", "head.bias"}
_TAGS = {"tag.weight", "tag.bias"}


class EncoderSpanReader:
    """Implements `SpanReader`. Safe to call from several threads: they take turns by batch.

    A passage longer than the model's window is read in windows that overlap, and its pointer is the best
    window's (Devlin et al. 2019, arXiv:1810.04805, as in their SQuAD code). How likely an answer is at all
    comes from the margin of the best span over none, calibrated.
    """

    def __init__(
        self,
        model: SpanModel,
        tokenizer: Tokenizer,
        *,
        name: str,
        revision: str,
        calibration: Calibration,
        batch_tokens: int,
    ) -> None:
        """Wrap a loaded model; most callers want `load`.

        Args:
            model: The model, on its device.
            tokenizer: Of the BERT kind, without truncation and padding.
            name: The reader's name.
            revision: Identifies its weights.
            calibration: Turns margins into probabilities.
            batch_tokens: Most tokens of one batch, padding included; a longer window goes alone.

        Raises:
            ReaderUnavailable: The tokenizer has no [CLS] or [SEP], or the model reads fewer tokens than a window has.
        """
        if any(tokenizer.token_to_id(token) is None for token in _SPECIAL):
            raise ReaderUnavailable(f'The reader "{name}" needs a tokenizer with {" and ".join(_SPECIAL)}.')
        if model.encoder.config.max_position_embeddings < WINDOW_TOKENS:
            raise ReaderUnavailable(f'The reader "{name}" needs a model that reads {WINDOW_TOKENS} tokens at once.')
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._name = name
        self._revision = revision
        self._calibration = calibration
        self._batch_tokens = batch_tokens
        self._lock = Lock()

    @classmethod
    def load(
        cls,
        folder: Path,
        base_folder: Path,
        *,
        name: str = "",
        calibration: Calibration = UNCALIBRATED,
        device: Device = "auto",
        dtype: Dtype = "auto",
    ) -> "EncoderSpanReader":
        """Load the base model and replace its upper layers by the trained weights.

        Args:
            folder: The folder written by `save_reader`.
            base_folder: The embedder the reader was trained from, as a local folder.
            name: The reader's name; its folder's name when empty.
            calibration: Turns margins into probabilities.
            device: "auto" takes a GPU when there is one.
            dtype: Of the arithmetic; "auto" is half precision where the hardware multiplies it.

        Raises:
            ReaderUnavailable: The weights or the base are not there, are damaged, or do not fit together.
        """
        name = name or folder.name
        on_cuda = on_gpu(
            device, absent=ReaderUnavailable(f'The reader "{name}" is to run on a GPU, but there is none.')
        )
        chosen = dtype if dtype != "auto" else fastest_dtype(on_cuda=on_cuda)
        damaged = ReaderUnavailable(
            f'The reader "{name}" cannot be loaded, its files or those of its base model are missing or damaged.'
        )
        with loading(damaged):
            revisions = f"{digest(base_folder)} {digest(folder)}"
            weights = load_file(folder / READER_FILES[0])
            model = SpanModel.from_base(base_folder, tags=weights.keys() >= _TAGS)
            tokenizer = plain_tokenizer(base_folder)
        if not _fits(weights, model.state_dict()):
            raise ReaderUnavailable(
                f'The reader "{name}" was trained on another model than {base_folder.name}: its weights do not fit.'
            )
        model.load_state_dict(weights, strict=False)
        model.requires_grad_(requires_grad=False)
        return cls(
            model.to(device="cuda" if on_cuda else "cpu", dtype=getattr(torch, chosen)),
            tokenizer,
            name=name,
            # The lower layers are the base's, so the reader's identity includes both.
            revision=hashlib.sha256(revisions.encode()).hexdigest()[:16],
            calibration=calibration,
            batch_tokens=CUDA_BATCH_TOKENS if on_cuda else CPU_BATCH_TOKENS,
        )

    @property
    def model(self) -> str:
        """The reader's name."""
        return self._name

    @property
    def revision(self) -> str:
        """16 hex digits of the SHA-256 over the digests of the base's weights and of the trained ones."""
        return self._revision

    @property
    def threshold(self) -> float:
        """The least probability of an answer, the best passage's of several, from which on to answer."""
        return self._calibration.threshold

    def count_tokens(self, question: str, passages: Sequence[str]) -> int:
        """Tokens `read` reads: of every window, special tokens and the question included, without padding."""
        return sum(len(window.ids) for passage in passages for window in self._windows(question, passage))

    def read(self, question: str, passages: Sequence[str]) -> list[Pointer | None]:
        """The likeliest answer in each passage, in the order of `passages`; None where there is no text to read.

        Raises:
            ReaderUnavailable: The model gave something that is no number (half precision overflows).
        """
        whole = [[Span(0, len(passage))] for passage in passages]
        return [pointers[0] for pointers in self.mark(question, passages, whole)]

    def mark(
        self,
        question: str,
        passages: Sequence[str],
        pieces: Sequence[Sequence[Span]],
        *,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Pointer | None]]:
        """The likeliest answer within each piece of each passage; a piece in several windows has its best one's.

        `on_batch(tokens)` is called after each batch with the number of tokens read so far; its exceptions end the
        reading.

        Raises:
            ReaderUnavailable: The model gave something that is no number (half precision overflows).
        """
        owners: list[int] = []
        windows: list[Window] = []
        for at, passage in enumerate(passages):
            for window in self._windows(question, passage):
                owners.append(at)
                windows.append(window)
        best: list[list[Pointer | None]] = [[None] * len(of_passage) for of_passage in pieces]
        read = 0
        for batch in _batches([len(window.ids) for window in windows], most=self._batch_tokens):
            starts, ends, tags = self._scores([windows[place] for place in batch])
            for row, place in enumerate(batch):
                window, of_passage, within = windows[place], best[owners[place]], pieces[owners[place]]
                # Padding cannot win, so there is no need to look at it.
                size = len(window.ids)
                spans = best_spans(starts[row, :size], ends[row, :size], window, within)
                evidence = [None] * len(within) if tags is None else most_evidence(tags[row, :size], window, within)
                for number, (span, most) in enumerate(zip(spans, evidence, strict=True)):
                    if span is not None:
                        of_passage[number] = _better(of_passage[number], self._pointer(window, *span, most))
            read += sum(len(windows[place].ids) for place in batch)
            if on_batch is not None:
                on_batch(read)
        return best

    def _pointer(self, window: Window, first: int, last: int, margin: float, evidence: float | None) -> Pointer:
        start, end = window.offsets[first - window.first][0], window.offsets[last - window.first][1]
        return Pointer(start, end, self._calibration.probability(margin), margin, evidence)

    def _windows(self, question: str, passage: str) -> list[Window]:
        return windows_of(self._tokenizer, question, passage)

    def _scores(self, windows: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor | None]:
        """The scores of starts, ends and evidence, each [windows, tokens] float32 on the CPU."""
        with self._lock, torch.inference_mode():
            states, may = self._model.states(windows)
            starts, ends = (scores.cpu() for scores in self._model.pointed(states, may))
            tags = self._model.tagged(states, may)
            tags = None if tags is None else tags.cpu()
        if not all(scores.isfinite().all() for scores in (starts, ends, tags) if scores is not None):
            raise ReaderUnavailable(f'The reader "{self._name}" gave scores that are no numbers.')
        return starts, ends, tags


def _better(before: Pointer | None, found: Pointer) -> Pointer:
    """The pointer with the larger margin, with the larger evidence of both windows."""
    if before is None:
        return found
    best = found if found.margin > before.margin else before
    known = [one.evidence for one in (before, found) if one.evidence is not None]
    return replace(best, evidence=max(known, default=None))


def save_reader(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write trained weights, by the names of `SpanModel`, in half precision, whole or not at all.

    Raises:
        ValueError: A weight overflows half precision.
        OSError: The folder cannot be written.
    """
    save_halves(weights, folder / READER_FILES[0])


def _fits(weights: Mapping[str, Tensor], places: Mapping[str, Tensor]) -> bool:
    """Whether the weights fit the model's shapes and include the head, which the base lacks."""
    return weights.keys() >= _HEAD and all(
        name in places and places[name].shape == weight.shape for name, weight in weights.items()
    )


def _batches(lengths: Sequence[int], *, most: int) -> Iterator[list[int]]:
    """Places of windows of similar length, longest first, each batch within `most` padded tokens."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > most:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
