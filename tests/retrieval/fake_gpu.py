"""A device that is no GPU and is as limited as one: FAISS's sources say what a GPU index refuses and ignores."""

from threading import Lock
from typing import Any

import faiss

from retrieval.device_copy import MOST, DeviceCopy, transfer_by


class FakeGpu:
    """Makes copies that search in memory. Counts what it is asked, fails when told to."""

    def __init__(self) -> None:
        self.searches: list[int] = []  # neighbours asked for, one number a search
        self.copies: list[DeviceCopy] = []
        self.full = False  # the next copy does not fit
        self.broken = False  # the next search fails
        self.busy = Lock()
        self._transfer = transfer_by(self._clone)

    def transfer(self, raw: Any) -> DeviceCopy:
        """A `Transfer`."""
        self.copies.append(self._transfer(raw))
        return self.copies[-1]

    def _clone(self, raw: Any) -> "_GpuIndex":
        if self.full:
            raise RuntimeError("cudaMalloc error out of memory")
        with _alone(self.busy):
            return _GpuIndex(self, faiss.clone_index(raw))


class _GpuIndex:
    """Searches like `GpuIndexFlat` and `GpuIndexIVF`: no selector, 2,048 of anything, one thread; no other method."""

    def __init__(self, gpu: FakeGpu, raw: Any) -> None:
        self._gpu = gpu
        self._raw = raw

    def search(self, rows: Any, n: int, *, params: Any) -> Any:
        if n > MOST or (params is not None and params.nprobe > MOST):
            raise RuntimeError("GPU index only supports min/max-K selection up to 2048")
        with _alone(self._gpu.busy):
            self._gpu.searches.append(n)
            if self._gpu.broken:
                raise RuntimeError("CUDA error 700 an illegal memory access was encountered")
            if params is not None:
                params.sel = None  # ignored without a word
            return self._raw.search(rows, n, params=params)


class _alone:  # noqa: N801 - read as a word after `with`
    """Two threads on the device at once are our mistake."""

    def __init__(self, busy: Any) -> None:
        self._busy = busy

    def __enter__(self) -> None:
        assert self._busy.acquire(blocking=False), "a GPU index must not be used by two threads at once"

    def __exit__(self, *_: object) -> None:
        self._busy.release()
