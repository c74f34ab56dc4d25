"""The embedder: a sentence-transformers model."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from retrieval.errors import EmbedderUnavailable
from retrieval.ports import Vectors
from retrieval.types import EmbedderInfo
from retrieval.weights import CUDA_BATCH_TOKENS, digest, fastest_dtype, folder_of, loading, on_gpu

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Dtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16", "int8"]

# Padded tokens of one batch on a CPU: larger ones only add padding and wait (155 passages/s at 16 × 177 tokens against
# 127/s at 64).
CPU_BATCH_TOKENS = 4096

# Names under which models declare their prompts: sentence-transformers', then nomic's, jina's, and those of
# models with prompts for several tasks (e5-mistral, stella).
_QUERY_PROMPTS = ("query", "search_query", "retrieval.query", "web_search_query", "s2p_query")
_DOCUMENT_PROMPTS = ("document", "passage", "corpus", "search_document", "retrieval.passage")


class SentenceEncoder:
    """Implements `ChunkingEmbedder`. Safe to call from several threads: they take turns by batch.

    Texts are sorted by length and batched under a token budget, so little is padded; a question
    waits at most for the batch that runs. A model that declares prompts for questions and documents
    gets them; one that declares a default prompt gets it for both, unless it is the other side's. Of a
    model whose first dimensions can stand alone (Matryoshka, Kusupati et al. 2022, arXiv:2205.13147) the rest
    may be left out. The arithmetic may be half precision, the vectors are float32 and of unit length.
    """

    def __init__(self, model: Any, *, name: str, revision: str, batch_tokens: int) -> None:
        """Wrap a loaded `SentenceTransformer`; most callers want `load`.

        Args:
            model: The model, on its device.
            name: The model's name in `info`.
            revision: Identifies its weights.
            batch_tokens: Most tokens of one batch, padding included; a longer text goes alone.

        Raises:
            EmbedderUnavailable: The model declares no input limit or no fast tokenizer.
        """
        self._model = model
        self._lock = Lock()
        self._batch_tokens = batch_tokens
        self._tokenizer = _plain_tokenizer(model, name)
        limit, dim = model.max_seq_length, model.get_embedding_dimension()
        if limit is None or dim is None:
            raise EmbedderUnavailable(f'The embedding model "{name}" declares no input limit or no dimension.')
        self._limit = int(limit)
        # Chosen here: the library fills in an empty "document", which hides a "passage" the model declares.
        default = model.default_prompt_name
        self._query_prompt = _prompt(model.prompts, _QUERY_PROMPTS, default=default, others=_DOCUMENT_PROMPTS)
        self._document_prompt = _prompt(model.prompts, _DOCUMENT_PROMPTS, default=default, others=_QUERY_PROMPTS)
        # It is read as part of the input, so texts have that much less room.
        self._prompt_tokens = len(self._tokenizer.encode(self._document_prompt, add_special_tokens=False).ids)
        room = self._limit - self._prompt_tokens
        if room < 1:
            raise EmbedderUnavailable(f'The document prompt of the embedding model "{name}" leaves no room for text.')
        if self._document_prompt:  # other prompts before the same texts make other vectors
            revision = f"{revision}-{hashlib.sha256(self._document_prompt.encode()).hexdigest()[:8]}"
        self._info = EmbedderInfo(model=name, revision=revision, dim=int(dim), max_tokens=room)

    @classmethod
    def load(
        cls,
        model: str,
        *,
        device: Device = "auto",
        dtype: Dtype = "auto",
        dimensions: int | None = None,
        local_files_only: bool = True,
    ) -> "SentenceEncoder":
        """Load a model from a folder or by its Hugging Face id.

        Args:
            model: A sentence-transformers folder, or an id such as `BAAI/bge-small-en-v1.5`.
            device: "auto" takes a GPU when there is one.
            dtype: Of the arithmetic. "auto" is float16 on a GPU; on a CPU it is bfloat16 where the
                CPU multiplies it in hardware (AMX or AVX512-BF16) and is faster with it, up to three
                times (cosine to float32 at least .998), else float32. "int8" is for CPUs with
                AVX512-VNNI; it moves the vectors enough (cosine to float32 .998 on average, .992 at least) to be never
                chosen by "auto" and to be part of the revision.
            dimensions: Number of leading dimensions to keep, scaled to unit length again; None keeps
                the model's `truncate_dim`, else all. Part of `info.dim`, as vectors of
                different lengths never mix.
            local_files_only: Never use the network.

        Raises:
            EmbedderUnavailable: There is no such model here, it cannot be loaded, it has fewer
                dimensions, or this processor has no fast 8-bit products.
        """
        import torch
        from sentence_transformers import SentenceTransformer

        from retrieval.encoder_int8 import SAMPLES, quantise_linears, supports_int8

        name = Path(model).name if Path(model).is_dir() else model
        on_cuda = on_gpu(
            device, absent=EmbedderUnavailable(f'The embedding model "{name}" is to run on a GPU, but there is none.')
        )
        chosen = dtype if dtype != "auto" else fastest_dtype(on_cuda=on_cuda)
        if chosen == "int8" and (on_cuda or not supports_int8()):
            raise EmbedderUnavailable("An embedder in int8 needs a CPU with AVX512-VNNI.")
        try:
            folder = folder_of(model, local_files_only=local_files_only)
            revision = digest(folder)
        except (OSError, ValueError) as error:
            raise EmbedderUnavailable(
                f'The embedding model "{name}" is not installed; run `footnote models fetch`.'
            ) from error
        damaged = EmbedderUnavailable(
            f'The embedding model "{name}" cannot be loaded, its files are damaged or incomplete; '
            "run `footnote models fetch`."
        )
        with loading(damaged):
            loaded = SentenceTransformer(
                str(folder),
                device="cuda" if on_cuda else "cpu",
                local_files_only=local_files_only,
                truncate_dim=dimensions,
                model_kwargs={"dtype": torch.float32 if chosen == "int8" else getattr(torch, chosen)},
            )
        loaded.eval()
        dim = loaded.get_embedding_dimension()
        if dimensions is not None and dim is not None and dim < dimensions:
            raise EmbedderUnavailable(
                f'The embedding model "{name}" makes vectors of {dim} dimensions, not of {dimensions} or more.'
            )
        if chosen == "int8":
            if not quantise_linears(loaded, read_samples=lambda: loaded.encode(list(SAMPLES), show_progress_bar=False)):
                raise EmbedderUnavailable(f'The embedding model "{name}" has no layers to run in int8.')
            revision = f"{revision}-int8"
        return cls(
            loaded, name=name, revision=revision, batch_tokens=CUDA_BATCH_TOKENS if on_cuda else CPU_BATCH_TOKENS
        )

    @property
    def info(self) -> EmbedderInfo:
        """Identifies the vectors.

        int8 and a prompt before documents are part of the revision; other dtypes change them by less than matters.
        """
        return self._info

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer without truncation and padding, used to cut text into chunks."""
        return self._tokenizer

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, special tokens included, untruncated, without any prompt."""
        return len(self._tokenizer.encode(text).ids)

    def count_query(self, text: str) -> int:
        """Tokens `embed_query` reads: the model's prompt and special tokens included, cut where the model cuts."""
        return min(self.count_tokens(self._query_prompt + text), self._limit)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        """Tokens `embed_documents` reads of all `texts`, the model's prompt before each of them included.

        `counted` are the texts' own tokens by `count_tokens`; they are counted again only behind a prompt,
        since a word may be cut otherwise there.
        """
        if not self._document_prompt:
            return sum(min(tokens, self._limit) for tokens in counted)
        prompted = [self._document_prompt + text for text in texts]
        return sum(min(len(encoding.ids), self._limit) for encoding in self._tokenizer.encode_batch(prompted))

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`; a text beyond `max_tokens` is cut.

        `on_batch(done)` is called after each batch with the number of texts embedded so far.
        """
        rows = np.empty((len(texts), self._info.dim), dtype=np.float32)
        done = 0
        for batch in self._batches(texts):
            with self._lock:
                encoded = self._model.encode_document(
                    [texts[i] for i in batch],
                    prompt=self._document_prompt,
                    batch_size=len(batch),
                    show_progress_bar=False,
                )
            rows[batch] = _unit(encoded)
            done += len(batch)
            if on_batch is not None:
                on_batch(done)
        return rows

    def embed_query(self, text: str) -> Vectors:
        """(dim,) float32 unit vector."""
        with self._lock:
            encoded = self._model.encode_query([text], prompt=self._query_prompt, show_progress_bar=False)
        row: Vectors = _unit(encoded)[0]
        return row

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Positions in `texts`, longest first, so that running out of memory shows in the first batch."""
        encodings = self._tokenizer.encode_batch(list(texts))
        lengths = [min(len(encoding.ids) + self._prompt_tokens, self._limit) for encoding in encodings]
        batch: list[int] = []
        for i in sorted(range(len(texts)), key=lambda i: -lengths[i]):
            if batch and (len(batch) + 1) * lengths[batch[0]] > self._batch_tokens:
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch


def _unit(encoded: Any) -> Vectors:
    """Normalises rows to length 1 in float32; half precision alone is not exact enough."""
    rows = np.asarray(encoded, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


def _prompt(prompts: Mapping[str, str], names: Sequence[str], *, default: str | None, others: Sequence[str]) -> str:
    """The first prompt declared under one of `names`, else the default one unless it is one of `others`; or ""."""
    own = next((prompts[name] for name in names if prompts.get(name)), "")
    if own or default is None or default in others:
        return own
    return prompts.get(default, "")


def _plain_tokenizer(model: Any, name: str) -> "Tokenizer":
    """A copy of the model's fast tokenizer: encoding sets truncation and padding on the original."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EmbedderUnavailable(f'The embedding model "{name}" has no fast tokenizer.')
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
