"""CUDA graphs for decode: a step of single tokens is launched as one recording instead of kernel by kernel.

A decode step of a small model is some thousand kernels of a few microseconds each, and Python takes longer to
launch them than the GPU to run them. A graph is launched once. What it computes with must stay where it
was when it was captured, so a step is copied into buffers that belong to the graph, padded to the next of a
few shapes: rows (`BATCHES`) and the tokens that the longest row has room for (`LENGTHS`). Rows that only pad
read and write the first slot of the cache's trash block. Prefill, drafts and steps beyond the largest
shape run kernel by kernel.

Each graph is captured over padding alone and then compared, on the first step it could serve, with that step run
kernel by kernel: over the same padded rows, where the two must be equal
but for the last bits, and over the step's own rows, where other kernels may round otherwise. One that fails or
disagrees ends the use of graphs; a capture that fails is tried again, because work of other threads on the same
device can break it. The recording itself is a port, and the tests record on a CPU.
"""

import logging
from bisect import bisect_left
from collections import Counter
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
_TOLERANCE = 1e-3  # of the logits' norm, between a replay and the same kernels launched one by one
# Of the same, for a step without padding: products of another number of rows may sum in another order, and in bfloat16
# that alone moved the logits of the default model by up to 0.043. Wrong rows or positions move them by more than half.
_ROUNDING = 0.1
_ATTEMPTS = 3  # at capturing one shape
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
    output of a graph is its own. All are recorded on one stream, for cuBLAS keeps a workspace for each (32 MiB on
    Hopper); it is of high priority, which the recorded kernels inherit.
    """

    def __init__(self) -> None:
        """Touch nothing yet."""
        self.trusted = True
        self._pool: Any = None  # torch's handle of a memory pool
        self._stream: Any = None

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `Capture.record`.

        Raises:
            RuntimeError: torch's own error for an operation that a capture forbids, or for lack of memory.
        """
        before = torch.cuda.current_stream()
        if self._stream is None:
            self._stream = torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]
        aside = self._stream
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
            with torch.cuda.graph(graph, pool=self._pool, stream=aside, capture_error_mode="thread_local"):
                output = work()
        finally:
            torch.cuda.set_stream(before)  # a capture that fails at its end leaves its own stream current
        return _CudaRecording(graph, output)


class _DecodeGraph:
    """A decode step of one shape: buffers that stay where they are, and the recording that reads them.

    `proved` is whether it was compared with a step run kernel by kernel.
    """

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
        self.proved = False

    def logits(self, ids: Sequence[int], rows: Sequence[PagedRow]) -> Tensor:
        """[n, V] float32 for n tokens in n rows; a view that the next call overwrites."""
        padding = self._padding[len(rows) :]
        carried = [*ids, *(0 for _ in padding), *(row.past for row in rows), *(0 for _ in padding)]
        self._index.refill([*rows, *padding], carried=carried)
        return self._recording.replay()[: len(rows)]

    def launch(self, count: int) -> Tensor:
        """[count, V] float32: the same as the latest call of `logits`, its kernels launched one by one."""
        return self._work()[:count]


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
        self._failures: Counter[tuple[int, int]] = Counter()
        self._broken = 0  # failures that were not for want of memory
        self._why_off: str | None = None

    @property
    def why_off(self) -> str | None:
        """A sentence on why steps are launched kernel by kernel; None while graphs serve."""
        if self._capture.trusted:
            return None
        return self._why_off or "CUDA graphs failed before the engine was restarted; the log says more."

    def prepare(self, *, rows: int, tokens: int) -> None:
        """Capture beforehand what steps of up to `rows` rows of up to `tokens` tokens need, the largest first.

        The largest first, so that the others fit in the memory that its intermediate results took.
        """
        batches = self._batches[: bisect_left(self._batches, rows) + 1]
        lengths = self._lengths[: bisect_left(self._lengths, tokens) + 1]
        for batch in reversed(batches):
            for length in reversed(lengths):
                while self._capture.trusted and self._failures[batch, length] < _ATTEMPTS:
                    if self._captured((batch, length)) is not None:
                        break

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
        graph = None if shape is None or not self._capture.trusted else self._captured(shape)
        if graph is None:
            return eager()
        try:
            got = graph.logits(ids, rows)
            if graph.proved:
                return got
            padded = graph.launch(len(rows))
        except Exception:
            logger.exception("decode steps cannot be run as CUDA graphs here; they are launched kernel by kernel")
            self.give_up("A CUDA graph of a decode step failed; the log says more.")
            return eager()
        expected = eager()  # after the graph: overwrites what a wrong graph stored
        exact, rounded = _difference(got, padded), _difference(got, expected)
        if exact is None or rounded is None:
            return expected  # no row can tell
        if exact <= _TOLERANCE and rounded <= _ROUNDING:  # neither is true of NaN
            logger.info("decode steps of shape %s agree: %.1e padded, %.1e alone", shape, exact, rounded)
            graph.proved = True
        else:
            logger.error(
                "decode steps as CUDA graphs compute something else here (off by %.1e padded, %.1e alone); "
                "they are launched kernel by kernel",
                exact,
                rounded,
            )
            self.give_up("CUDA graphs of decode steps compute something else than their kernels here.")
        return expected

    def _captured(self, shape: tuple[int, int]) -> _DecodeGraph | None:
        """The graph of a shape, captured if it is not yet; None where that failed.

        A shape is given up after `_ATTEMPTS`, and graphs altogether if none could be captured by then, and not for
        want of memory, which smaller shapes need less of.
        """
        if shape in self._graphs or self._failures[shape] >= _ATTEMPTS:
            return self._graphs.get(shape)
        try:
            self._graphs[shape] = _DecodeGraph(
                self._forward,
                self._tensors,
                self._capture,
                rows=shape[0],
                reserve_tokens=shape[1],
                upload=self._upload,
            )
        except Exception as error:
            self._failures[shape] += 1
            self._broken += not isinstance(error, torch.OutOfMemoryError)
            if not self._graphs and self._broken >= _ATTEMPTS:
                logger.exception("decode steps cannot be run as CUDA graphs here; they are launched kernel by kernel")
                self.give_up("Decode steps cannot be captured as CUDA graphs here; the log says more.")
            else:
                logger.warning("a decode step of shape %s could not be captured", shape, exc_info=True)
        return self._graphs.get(shape)

    def give_up(self, why: str) -> None:
        """Capture and replay nothing any more, in this process; `why` is a sentence. Idempotent."""
        self._why_off = self._why_off or why
        self._capture.trusted = False
        self._graphs.clear()

    def _shape(self, rows: Sequence[PagedRow]) -> tuple[int, int] | None:
        """Rows and tokens of the smallest graph that holds these rows; None where there is none."""
        batch = bisect_left(self._batches, len(rows))
        length = bisect_left(self._lengths, max(row.length for row in rows))
        if batch == len(self._batches) or length == len(self._lengths):
            return None
        return self._batches[batch], self._lengths[length]


def _difference(got: Tensor, expected: Tensor) -> float | None:
    """How far [n, V] logits are from the expected ones, as a share of their norm; None when no row is finite."""
    well = expected.isfinite().all(dim=1)
    if not bool(well.any()):
        return None
    got, expected = got[well], expected[well]
    return float((got - expected).norm() / expected.norm())
