"""A copy of a FAISS index on a GPU: candidates by the thousand, without filters.

The limits of FAISS's GPU indexes determine their use (`retrieval.device_index`): a selector in the
search parameters is silently ignored, no key can be removed, at most 2,048 neighbours and as many
inverted lists are read per search, and nothing is safe from two threads (FAISS wiki, "Faiss on the GPU").
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

import faiss

from retrieval.errors import IndexDeviceUnavailable
from retrieval.fusion import Scores
from retrieval.ports import Keys, Vectors

MOST = 2048  # neighbours, and inverted lists, of one search on a GPU
_SCRATCH_BYTES = 64 << 20  # FAISS would take 1.5 GB, which models on the same GPU need


class DeviceCopy:
    """A frozen copy of an index as it was when it was made. Safe to call from several threads: they take turns."""

    def __init__(self, raw: Any, *, inverted: bool, turn: Lock) -> None:
        """`raw` answers `search` as FAISS's indexes do; `turn` is held in every call on the device."""
        self._raw: Any | None = raw
        self._inverted = inverted
        self._turn = turn

    def search(self, row: Vectors, *, n: int, probes: int) -> tuple[Scores, Keys] | None:
        """The `n` best of all keys by the device's own arithmetic, `(n,)` each, best first; key -1 pads.

        Args:
            row: `(dim,)` float32.
            n: At most `MOST`.
            probes: Inverted lists to read, at most `MOST`; without meaning in a flat copy.

        Returns:
            None when the copy was closed.

        Raises:
            RuntimeError: The device fails.
        """
        assert n <= MOST, "the caller knows how many a device finds"
        swig: Any = faiss  # its constructors are rewritten at import
        parameters = swig.SearchParametersIVF(nprobe=probes) if self._inverted else None
        with self._turn:
            if self._raw is None:
                return None
            scores, keys = self._raw.search(row[None, :], n, params=parameters)
        return scores[0], keys[0]

    def close(self) -> None:
        """Frees the device's memory. Waits for its turn, because freeing memory during a search is not safe."""
        with self._turn:
            self._raw = None


Transfer: TypeAlias = Callable[[Any], DeviceCopy]
"""Copies a FAISS index to the device; it must not change meanwhile. RuntimeError when the device is full."""


def transfer_by(clone: Callable[[Any], Any]) -> Transfer:
    """A transfer whose copies are made by `clone` and share one lock, as everything on one device must."""
    turn = Lock()

    def transfer(raw: Any) -> DeviceCopy:
        with turn:
            copied = clone(raw)
        return DeviceCopy(copied, inverted=isinstance(raw, faiss.IndexIVF), turn=turn)

    return transfer


def gpu_transfer() -> Transfer:
    """A transfer to the first CUDA device. Nothing is copied yet.

    It is written to FAISS 1.15.1's sources and Python interface and has not run on a GPU so far.

    Raises:
        IndexDeviceUnavailable: This FAISS was built without GPU support, or there is no GPU.
    """
    gpu: Any = faiss
    if not hasattr(gpu, "StandardGpuResources"):
        raise IndexDeviceUnavailable(
            "FOOTNOTE_INDEX_DEVICE=cuda needs FAISS built for GPUs: install the gpu extra in place of the cpu one."
        )
    if gpu.get_num_gpus() < 1:
        raise IndexDeviceUnavailable("FOOTNOTE_INDEX_DEVICE=cuda needs a CUDA device, and FAISS sees none.")
    resources = gpu.StandardGpuResources()
    resources.setTempMemory(_SCRATCH_BYTES)
    return transfer_by(lambda raw: gpu.index_cpu_to_gpu(resources, 0, raw))
