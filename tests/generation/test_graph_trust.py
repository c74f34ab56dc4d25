"""When graphs are captured, what a failed capture costs, and how exactly a replay is compared."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from generation.graphs import CudaCapture, DecodeGraphs, Recording
from generation.memory import Pages, StepInputs, memory_of
from generation.paged_index import PagedRow
from tests.generation.graphed import ROOMY, alone, asked, counting_graphs, play, staged
from tests.generation.recorder import Altering, Recorder
from tests.generation.stage import loaded
from tests.generation.tiny import VOCAB

torch.set_num_threads(1)


@dataclass
class Failing(Recorder):
    """Fails at the captures with these numbers, from 1 on, as where another thread waits for the device meanwhile."""

    failing: frozenset[int] = frozenset()
    asked: int = 0

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `graphs.Capture.record`."""
        self.asked += 1
        if self.asked in self.failing:
            raise RuntimeError("operation failed due to a previous error during capture")
        return super().record(work)


@dataclass
class Narrow(Recorder):
    """Has no memory for graphs of more than one row."""

    refused: list[int] = field(default_factory=list)

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `graphs.Capture.record`."""
        if (rows := work().shape[0]) > 1:
            self.refused.append(rows)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().record(work)


def rows_of(*pasts: int) -> list[PagedRow]:
    return [PagedRow(n, n + 1, past, range(6 * n, 6 * n + 6)) for n, past in enumerate(pasts)]


def test_what_is_captured_at_load_is_not_captured_in_anybodys_step() -> None:
    capture = Recorder()
    stage = staged(capture)
    stage.runner.prepare(rows=3, tokens=1500)
    captured = len(capture.recordings)

    requests = [asked(n, outputs=12) for n in range(3)]
    assert play(stage, requests) == alone(requests)

    shapes = [recording.output.shape[0] for recording in capture.recordings]
    assert shapes == [4, 4, 2, 2, 1, 1], "of 1,024 and of 2,048 tokens, the largest first"
    assert len(capture.recordings) == captured and capture.replays > 10


def test_without_graphs_nothing_is_captured_at_load() -> None:
    stage = staged(None)

    stage.runner.prepare(rows=8, tokens=4096)

    assert play(stage, [asked(0)]) == alone([asked(0)])


def test_a_capture_that_another_thread_broke_is_made_again() -> None:
    capture = Failing(failing=frozenset({1, 2}))
    requests = [asked(n, outputs=12) for n in range(2)]

    assert play(staged(capture), requests) == alone(requests)

    assert capture.trusted and capture.replays > 5
    assert capture.asked == 3


def test_one_shape_that_cannot_be_captured_does_not_end_the_others() -> None:
    capture = Narrow()
    requests = [asked(0, outputs=30), asked(1, outputs=10)]

    assert play(staged(capture), requests) == alone(requests)

    assert capture.refused == [2, 2, 2]
    assert capture.trusted and capture.replays > 10


def test_where_nothing_can_be_captured_at_load_the_first_shape_alone_is_tried() -> None:
    capture = Failing(failing=frozenset(range(100)))
    stage = staged(capture)

    stage.runner.prepare(rows=8, tokens=32_768)

    assert capture.asked == 3 and not capture.trusted


def graphs_of(capture: Any, forward: Callable[[StepInputs], Tensor]) -> DecodeGraphs:
    pages = memory_of(loaded(ROOMY), block_tokens=4, layout="pages", prefix_cache=True, poison=True)
    assert isinstance(pages, Pages)
    return DecodeGraphs(forward, pages.cache.tensors, capture, batches=(1, 4), lengths=(8, 16))


def test_rounding_that_differs_by_the_number_of_rows_is_no_reason_for_distrust() -> None:
    """Padded rows may be multiplied by another kernel: in bfloat16 its sums differ by some hundredths of the norm."""
    table = torch.randn((VOCAB, VOCAB), generator=torch.Generator().manual_seed(0))
    noise = 0.04 * torch.randn((4, VOCAB), generator=torch.Generator().manual_seed(1))

    def forward(inputs: StepInputs) -> Tensor:
        return table[inputs.ids[0]] + (noise if inputs.ids.shape[1] == 4 else 0)

    capture = Recorder()
    graphs = graphs_of(capture, forward)
    ids = [10, 11, 12]
    for past in (3, 4, 5):
        graphs.logits(ids, rows_of(past, past, past), eager=lambda: table[torch.tensor(ids)])

    assert graphs.why_off is None
    assert capture.replays == 3


@pytest.mark.parametrize(
    ("change", "trusted"),
    [
        (lambda logits: logits * (1 + 1e-5), True),
        (lambda logits: logits * 1.005, False),  # half a per cent, which no rounding of equal kernels is
    ],
)
def test_a_replay_is_compared_closely_with_the_same_padded_rows(
    change: Callable[[Tensor], Tensor], trusted: bool
) -> None:
    capture = Altering(lambda _, logits: change(logits))
    graphs, _, eager = counting_graphs(capture)

    graphs.logits([4], rows_of(3), eager=eager([4]))

    assert capture.trusted is trusted
    assert (graphs.why_off is None) is trusted


def test_a_graph_that_equals_its_kernels_over_padding_and_not_the_step_is_refused() -> None:
    graphs = graphs_of(Recorder(), lambda inputs: torch.eye(VOCAB)[inputs.ids[0] + 1])  # the wrong rows, reliably

    graphs.logits([4], rows_of(3), eager=lambda: torch.eye(VOCAB)[torch.tensor([4])])

    assert graphs.why_off == "CUDA graphs of decode steps compute something else than their kernels here."


def test_a_model_whose_logits_are_no_numbers_is_captured_once() -> None:
    capture = Recorder()
    graphs, _, eager = counting_graphs(capture)

    for past in (3, 4, 5):
        assert graphs.logits([7], rows_of(past), eager=eager([7])).isnan().all()

    assert len(capture.recordings) == 1
    assert graphs.why_off is None


def test_all_captures_share_one_stream_of_high_priority_and_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    captures: list[tuple[object, object]] = []

    class Stream:
        def __init__(self, *, priority: int) -> None:
            made.append(priority)

        def wait_stream(self, other: object) -> None:
            """Nothing runs."""

    @contextlib.contextmanager
    def graph(_graph: object, *, pool: object, stream: object, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        captures.append((pool, stream))
        yield

    default = Stream(priority=0)
    made.clear()
    for name, fake in {
        "Stream": Stream,
        "CUDAGraph": object,
        "graph": graph,
        "graph_pool_handle": object,
        "current_stream": lambda: default,
        "set_stream": lambda _: None,
        "stream": lambda _: contextlib.nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    capture = CudaCapture()

    for _ in range(3):
        capture.record(lambda: torch.zeros(1))

    assert made == [-1]
    assert len(captures) == 3 and len(set(captures)) == 1
