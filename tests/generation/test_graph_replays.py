"""When steps are captured, which shape replays one, and what ends the use of graphs."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from generation.graphs import Capture, CudaCapture
from generation.paged_index import PagedRow
from generation.runner import ModelRunner
from generation.scheduler import ScheduledTokens
from generation.step import DeviceLost
from tests.generation.graphed import ROOMY, alone, asked, counting_graphs, decoding, play, staged
from tests.generation.recorder import Altering, Deaf, Recorder, Refusing
from tests.generation.stage import loaded
from tests.generation.tiny import VOCAB

torch.set_num_threads(1)


def test_slabs_are_never_captured() -> None:
    capture = Recorder()
    requests = [asked(0), asked(1)]

    assert play(staged(capture, layout="slabs"), requests) == alone(requests)

    assert not capture.recordings


def test_where_nothing_can_be_captured_it_is_tried_three_times_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    capture = Refusing()
    requests = [asked(n, outputs=5 + n) for n in range(3)]

    with caplog.at_level(logging.WARNING, logger="footnote.generation"):
        assert play(staged(capture), requests) == alone(requests)
        assert play(staged(capture), requests) == alone(requests), "the next engine"

    assert capture.asked == 3 and not capture.trusted
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "ERROR"]
    assert caplog.records[-1].message == (
        "decode steps cannot be run as CUDA graphs here; they are launched kernel by kernel"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="here there is a device to capture on")
def test_without_a_device_the_real_capture_is_given_up() -> None:
    capture = CudaCapture()
    requests = [asked(0), asked(1)]

    assert play(staged(capture), requests) == alone(requests)

    assert not capture.trusted


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_captured_graphs_give_the_same_tokens_as_eager_steps() -> None:
    capture = CudaCapture()
    requests = [replace(asked(n, outputs=4 + 5 * (n % 4), arrives=2 * n), sampling=0) for n in range(11)]

    captured = play(staged(capture, device="cuda"), requests)

    assert capture.trusted
    assert captured == play(staged(None, device="cuda"), requests)


def _fails_at_the_fourth(replay: int, logits: Tensor) -> Tensor:
    if replay == 4:
        raise RuntimeError("an illegal instruction was encountered")
    return logits


WRONG: dict[str, Callable[[], Capture]] = {
    "other numbers": lambda: Altering(lambda _, logits: 1.1 * logits),
    "rows in another order": lambda: Altering(lambda _, logits: logits.flip(0)),
    "no numbers": lambda: Altering(lambda _, logits: logits * float("nan")),
    "what was so when it was captured": Deaf,
    "an error, later": lambda: Altering(_fails_at_the_fourth),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_capture_that_gives_wrong_results_is_switched_off_and_the_answers_stay_right(
    wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    capture = WRONG[wrong]()
    requests = [asked(n, outputs=12) for n in range(2)]

    with caplog.at_level(logging.WARNING, logger="footnote.generation"):
        assert play(staged(capture), requests) == alone(requests)

    assert not capture.trusted
    assert len(caplog.records) == 1 and "kernel by kernel" in caplog.text


def test_every_shape_is_compared_not_only_the_first() -> None:
    capture = Altering(lambda _, logits: logits if logits.shape[0] == 1 else logits + 1)
    requests = [asked(0, outputs=12), asked(1, arrives=6)]

    assert play(staged(capture), requests) == alone(requests)

    assert capture.replays > 3 and not capture.trusted


def test_an_accelerator_that_is_lost_takes_the_graphs_with_it() -> None:
    class Lost(torch.nn.Module):
        def forward(self, **_: object) -> Tensor:
            raise torch.AcceleratorError("unspecified launch failure")

    capture = Recorder()
    healthy = staged(capture)
    sequences = decoding(healthy, 1)
    lost = ModelRunner(
        replace(loaded(ROOMY), model=Lost()),  # type: ignore[arg-type]
        vocab_size=VOCAB,
        block_tokens=4,
        layout="pages",
        capture=capture,
    )
    lost.allocate(sequences[0], 20)

    with pytest.raises(DeviceLost):
        lost.run([ScheduledTokens(sequences[0], 1, sampled=True, drafts=(3,))])

    assert not capture.trusted
    healthy.finisher.close()


def rows_of(*pasts: int) -> list[PagedRow]:
    return [PagedRow(n, n + 1, past, range(6 * n, 6 * n + 6)) for n, past in enumerate(pasts)]


@pytest.mark.parametrize(
    ("pasts", "shape"),
    [((0,), (1, 8)), ((7,), (1, 8)), ((8,), (1, 16)), ((3, 15), (2, 16)), ((16,), None), ((1, 1, 1), None)],
)
def test_a_step_takes_the_smallest_shape_that_holds_it(pasts: tuple[int, ...], shape: tuple[int, int] | None) -> None:
    capture = Recorder()
    graphs, eagerly, eager = counting_graphs(capture)
    ids = list(range(10, 10 + len(pasts)))

    found = [graphs.logits(ids, rows_of(*pasts), eager=eager(ids)).argmax(dim=1).tolist() for _ in range(3)]

    assert found == [ids] * 3
    assert len(eagerly) == (3 if shape is None else 1)
    assert [recording.output.shape[0] for recording in capture.recordings] == ([] if shape is None else [shape[0]])


def test_the_step_that_compares_ends_with_what_kernel_by_kernel_stores() -> None:
    events: list[str] = []

    def note(_: int, logits: Tensor) -> Tensor:
        events.append("graph")
        return logits

    graphs, _, eager = counting_graphs(Altering(note))

    def noted() -> Tensor:
        events.append("eager")
        return eager([4])()

    for past in (3, 4):
        graphs.logits([4], rows_of(past), eager=noted)

    assert events == ["graph", "eager", "graph"]


def test_each_shape_is_captured_once() -> None:
    capture = Recorder()
    graphs, eagerly, eager = counting_graphs(capture)

    for past in (3, 9, 4, 10, 5, 11):
        graphs.logits([4], rows_of(past), eager=eager([4]))

    assert len(capture.recordings) == 2 == len(eagerly)


def test_nan_logits_do_not_disable_graph_replay() -> None:
    capture = Recorder()
    graphs, eagerly, eager = counting_graphs(capture)

    assert graphs.logits([7], rows_of(3), eager=eager([7])).isnan().all()
    assert capture.trusted
    graphs.logits([7, 5], rows_of(3, 3), eager=eager([7, 5]))  # one row can tell
    again = graphs.logits([5, 7], rows_of(3, 3), eager=eager([5, 7]))

    assert capture.trusted
    assert eagerly == ["1", "2"]
    assert again[0].argmax() == 5 and again[1].isnan().all()
