"""CUDA graphs for decode: a step of single tokens is launched as one recording instead of kernel by kernel.

A decode step of a small model is some thousand kernels of a few microseconds each, and Python takes longer to
launch them than the GPU to run them. A graph is launched once. What it computes with must stay where it
was when it was captured, so a step is copied into buffers that belong to the graph, padded to the next of a
few shapes: rows (`BATCHES`) and the tokens that the longest row has room for (`LENGTHS`). Rows that only pad
read and write the first slot of the cache's trash block. Prefill, drafts and steps beyond the largest
shape run kernel by kernel.

No GPU has run this yet. Each graph is therefore captured over padding alone and then compared, on the first
step it could serve, with that step run kernel by kernel; one that cannot be captured, fails or disagrees
ends the use of graphs. The recording itself is a port, and the tests record on a CPU.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from generation.memory import StepInputs
from generation.paged_attention import PagedBatch
from generation.paged_cache import PagedTensors
from generation.paged_index import PagedIndex, PagedRow, Upload, upload

logger = logging.getLogger("footnote.generation")

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64)
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
_TOLERANCE = 0.02  # of the logits' norm, as where the attention kernels are compared
_WARM_UPS = 2  # kernels are compiled and workspaces allocated before the capture, which allows neither


class Recording(Protocol):
    """A recorded graph."""

    def replay(self) -> Tensor:
        """Run the recorded work on the current contents of its buffers; returns the same tensor, refilled."""
        ...


class Capture(Protocol):
    """Records device work as graphs. One instance per process, so that `trusted` outlives an engine.

    Attributes:
        trusted: Whether captured graphs gave correct results so far.
    """

    trusted: bool

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """Record what `work` does to device memory.

        `work` is called several times; it must do the same each time, wait for nothing and use no number that
        another replay would have differently.

        Raises:
            Exception: it cannot be recorded.
        """
        ...


class _CudaRecording:
    """A captured graph, and the tensor that it leaves its result in."""

    def __init__(self, graph: torch.cuda.CUDAGraph, output: Tensor) -> None:
        self._graph = graph
        self._output = output

    def replay(self) -> Tensor:
        """See `Recording.replay`."""
        self._graph.replay()
        return self._output


class CudaCapture:
    """A `Capture` of CUDA graphs (https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-graphs).

    All graphs share one memory pool for intermediate results, since no two run at the same time. The
    output of a graph is its own.
    """

    def __init__(self) -> None:
        """Touch nothing yet."""
        self.trusted = True
        self._pool: Any = None  # torch's handle of a memory pool

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `Capture.record`.

        Raises:
            RuntimeError: torch's own error for an operation that a capture forbids, or for lack of memory.
        """
        before = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(before)
        try:
            with torch.cuda.stream(aside):
                for _ in range(_WARM_UPS):
                    work()
            before.wait_stream(aside)
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            graph = torch.cuda.CUDAGraph()
            # Of this thread alone: others embed and rerank on the same device meanwhile.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                output = work()
        finally:
            torch.cuda.set_stream(before)  # a capture that fails at its end leaves its own stream current
        return _CudaRecording(graph, output)


class _DecodeGraph:
    """A decode step of one shape: buffers that stay where they are, and the recording that reads them."""

    def __init__(
        self,
        forward: Callable[[StepInputs], Tensor],
        tensors: PagedTensors,
        capture: Capture,
        *,
        rows: int,
        reserve_tokens: int,
        upload: Upload,
    ) -> None:
        """Record a step of padding: it touches no block of a sequence, and nothing in it is true of a later step."""
        self._padding = [PagedRow(place, place + 1, 0, [tensors.trash]) for place in range(rows)]
        self._index = PagedIndex(
            tensors, self._padding, reserve_tokens=reserve_tokens, carried=[0] * (2 * rows), upload=upload
        )
        batch = PagedBatch(tensors, self._index, kernels="triton" if tensors.device.type == "cuda" else "static")
        kept = torch.arange(rows, device=tensors.device)

        def work() -> Tensor:
            ids, positions = self._index.carried.long().view(2, 1, rows)
            return forward(StepInputs(ids, positions, kept, batch))

        self._work = work  # keeps alive what the recording reads
        self._recording = capture.record(work)

    def logits(self, ids: Sequence[int], rows: Sequence[PagedRow]) -> Tensor:
        """[n, V] float32 for n tokens in n rows; a view that the next call overwrites."""
        padding = self._padding[len(rows) :]
        carried = [*ids, *(0 for _ in padding), *(row.past for row in rows), *(0 for _ in padding)]
        self._index.refill([*rows, *padding], carried=carried)
        return self._recording.replay()[: len(rows)]


class DecodeGraphs:
    """Captures and replays one graph per shape of decode step."""

    def __init__(
        self,
        forward: Callable[[StepInputs], Tensor],
        tensors: PagedTensors,
        capture: Capture,
        *,
        upload: Upload = upload,
        batches: Sequence[int] = BATCHES,
        lengths: Sequence[int] = LENGTHS,
    ) -> None:
        """Capture nothing yet.

        Args:
            forward: The model: [n, V] float32 logits after the kept tokens.
            tensors: The cache.
            capture: Records.
            upload: Copies a step to the device.
            batches: Rows, ascending.
            lengths: Tokens of the longest row, ascending.
        """
        self._forward = forward
        self._tensors = tensors
        self._capture = capture
        self._upload = upload
        self._batches = tuple(batches)
        self._lengths = tuple(lengths)
        self._graphs: dict[tuple[int, int], _DecodeGraph] = {}

    def logits(self, ids: Sequence[int], rows: Sequence[PagedRow], *, eager: Callable[[], Tensor]) -> Tensor:
        """[n, V] float32 logits of a step that feeds one token to each row.

        Args:
            ids: [n] the tokens.
            rows: n of them, one query each, their room taken.
            eager: The same step kernel by kernel.

        Returns:
            Logits that hold until the next call.

        Raises:
            Exception: whatever `eager` raises.
        """
        shape = self._shape(rows)
        if shape is None or not self._capture.trusted:
            return eager()
        try:
            if shape in self._graphs:
                return self._graphs[shape].logits(ids, rows)
            graph = _DecodeGraph(
                self._forward,
                self._tensors,
                self._capture,
                rows=shape[0],
                reserve_tokens=shape[1],
                upload=self._upload,
            )
            got = graph.logits(ids, rows)
        except Exception:
            logger.exception("decode steps cannot be run as CUDA graphs here; they are launched kernel by kernel")
            self.give_up()
            return eager()
        expected = eager()  # after the graph: overwrites what a wrong graph stored
        agree = _agree(got, expected)
        if agree:
            self._graphs[shape] = graph
        elif agree is not None:
            logger.error("decode steps as CUDA graphs compute something else here; they are launched kernel by kernel")
            self.give_up()
        return expected

    def give_up(self) -> None:
        """Capture and replay nothing any more, in this process. Idempotent."""
        self._capture.trusted = False
        self._graphs.clear()

    def _shape(self, rows: Sequence[PagedRow]) -> tuple[int, int] | None:
        """Rows and tokens of the smallest graph that holds these rows; None where there is none."""
        batch = bisect_left(self._batches, len(rows))
        length = bisect_left(self._lengths, max(row.length for row in rows))
        if batch == len(self._batches) or length == len(self._lengths):
            return None
        return self._batches[batch], self._lengths[length]


def _agree(got: Tensor, expected: Tensor) -> bool | None:
    """Whether two [n, V] logits are the same but for rounding; None when no row is finite."""
    well = expected.isfinite().all(dim=1)
    if not bool(well.any()):
        return None
    got, expected = got[well], expected[well]
    return bool((got - expected).norm() <= _TOLERANCE * expected.norm())  # also refuses NaN
