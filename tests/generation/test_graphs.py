"""generation.graphs: decode steps by recordings say what steps kernel by kernel say, or are not used."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from generation.graphs import Capture, CudaCapture, DecodeGraphs
from generation.memory import Layout, Pages, StepInputs, memory_of
from generation.paged_index import PagedRow
from generation.runner import ModelRunner
from generation.scheduler import Work
from generation.sequence import SequenceState
from generation.step import DeviceLost
from tests.generation.recorder import Altering, CountedUploads, Deaf, Recorder, Refusing
from tests.generation.stage import Asked, Stage, loaded, solo_tokens
from tests.generation.tiny import CONFIGS, VOCAB

torch.set_num_threads(1)

ROOMY = 400


def asked(number: int = 0, *, outputs: int = 8, arrives: int = 0, length: int = 3) -> Asked:
    return Asked(
        family=number,
        shared=length + number,
        own=0,
        outputs=outputs,
        sampling=number % 3,
        arrives=arrives,
        leaves=None,
        user="ann",
        priority=0,
    )


def staged(
    capture: Capture | None,
    *,
    blocks: int = ROOMY,
    layout: Layout = "pages",
    family: str = "llama",
    device: str = "cpu",
    uploads: CountedUploads | None = None,
) -> Stage:
    return Stage(
        capacity_blocks=blocks,
        max_running=16,
        step_tokens=64,
        reuse=True,
        drafts=False,
        layout=layout,
        capture=capture,
        upload=uploads or CountedUploads(),
        family=family,
        device=device,
    )


def play(stage: Stage, requests: Sequence[Asked], *, each_turn: Callable[[], None] = lambda: None) -> list[list[int]]:
    """What each request was answered."""
    observers = []
    turn = 0
    while stage.busy or turn <= max(one.arrives for one in requests):
        observers += [stage.submit(one)[1] for one in requests if one.arrives == turn]
        stage.turn()
        each_turn()
        turn += 1
    stage.finisher.close()
    return [list(observer.wait().token_ids) for observer in observers]


def alone(requests: Sequence[Asked]) -> list[list[int]]:
    return [list(solo_tokens(one.prompt, one.params)) for one in requests]


def decoding(stage: Stage, count: int) -> list[SequenceState]:
    """Sequences that have one token left to compute."""
    sequences = [stage.submit(asked(number, outputs=30))[0] for number in range(count)]
    while not all(sequence.generated for sequence in sequences):
        stage.turn()
    for sequence in sequences:
        assert stage.runner.grow(sequence, sequence.position + 3)
    return sequences


def singles(sequences: Sequence[SequenceState]) -> list[Work[SequenceState]]:
    return [Work(sequence, 1, sampled=True, is_decode=True) for sequence in sequences]


def test_batches_that_grow_and_shrink_say_what_each_sequence_says_alone() -> None:
    capture = Recorder()
    requests = [asked(n, outputs=4 + 5 * (n % 4), arrives=2 * n) for n in range(11)]

    assert play(staged(capture), requests) == alone(requests)

    assert capture.trusted
    assert [recording.output.shape[0] for recording in capture.recordings] == [1, 2, 4, 8]
    assert capture.replays > 12


def test_sequences_that_give_way_and_come_back_say_the_same() -> None:
    capture = Recorder()
    requests = [asked(n, outputs=20, length=8) for n in range(4)]
    stage = staged(capture, blocks=20)

    assert play(stage, requests) == alone(requests)

    assert stage.loop.scheduler.preemptions > 0
    assert capture.trusted and capture.replays > 10


@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_no_model_waits_for_the_device_or_changes_its_mind_in_a_recording(family: str) -> None:
    capture = Recorder()
    requests = [replace(asked(n, outputs=16, length=7), sampling=0) for n in range(3)]

    recorded = play(staged(capture, family=family), requests)

    assert capture.trusted and capture.replays > 10
    assert recorded == play(staged(None, family=family), requests)


@pytest.mark.parametrize("count", [3, 4])
def test_a_step_writes_its_own_slots_and_the_trash_block_alone(count: int) -> None:
    capture = Recorder()
    stage = staged(capture)
    sequences = decoding(stage, count)
    tensors = stage.runner.cache.tensors  # type: ignore[attr-defined]
    stage.runner.run(singles(sequences))
    tensors.keys[:, tensors.trash] = float("nan")  # whatever lies there
    tensors.values[:, tensors.trash] = float("nan")
    before, replays = (tensors.keys.clone(), tensors.values.clone()), capture.replays

    samples = stage.runner.run(singles(sequences))

    assert capture.replays == replays + 1
    assert all(sample.tokens for sample in samples), "a token each, so the logits were numbers"
    tables = [stage.runner.cache.table(sequence) for sequence in sequences]  # type: ignore[attr-defined]
    places = [(table[s.computed // 4], s.computed % 4) for table, s in zip(tables, sequences, strict=True)]
    if count < 4:  # rounded up to four rows
        places.append((tensors.trash, 0))
    for was, now in zip(before, (tensors.keys, tensors.values), strict=True):
        for block, offset in places:
            assert now[:, block, offset].isfinite().all()
            now[:, block, offset] = was[:, block, offset]
        assert torch.equal(was.nan_to_num(nan=7.0), now.nan_to_num(nan=7.0))
    stage.finisher.close()


def test_steps_with_prompts_or_drafts_run_kernel_by_kernel() -> None:
    capture = Recorder()
    stage = staged(capture)
    sequences = decoding(stage, 3)
    stage.runner.run(singles(sequences))
    replays = capture.replays
    plain = singles(sequences)
    drafted = [*plain[:2], replace(plain[2], drafts=(5, 6))]
    new, _ = stage.submit(asked(5, length=9))
    stage.loop.scheduler.add(new)
    stage.loop.scheduler.admit(0.0)

    for plan in (drafted, [*plain, Work(new, 5, sampled=False)], [*plain, Work(new, 1, sampled=False)]):
        stage.runner.run(plan)
        assert capture.replays == replays
    stage.runner.run(plain)

    assert capture.replays == replays + 1
    stage.finisher.close()


def test_slabs_are_never_captured() -> None:
    capture = Recorder()
    requests = [asked(0), asked(1)]

    assert play(staged(capture, layout="slabs"), requests) == alone(requests)

    assert not capture.recordings


def test_a_step_is_one_copy_to_memory_that_stays_where_it_is() -> None:
    capture, uploads = Recorder(), CountedUploads()
    stage = staged(capture, uploads=uploads)
    seen: list[tuple[int, int, int]] = []

    play(
        stage,
        [asked(n, outputs=30) for n in range(3)],
        each_turn=lambda: seen.append((uploads.count, capture.replays, len(capture.recordings))),
    )

    steps = [tuple(b - a for a, b in zip(was, now, strict=True)) for was, now in pairwise(seen)]
    assert {step for step in steps if not step[2]} == {(1, 1, 0)}, "each step a copy and a replay"
    assert len(capture.recordings) == 1
    [recording] = capture.recordings
    replayed = uploads.targets[-capture.replays + 1 :]
    assert len(set(replayed)) == 1
    assert replayed[0] in recording.addresses, "what is copied to is what the recording reads"


def test_a_step_kernel_by_kernel_is_one_copy_too() -> None:
    uploads = CountedUploads()
    counts: list[int] = []
    requests = [asked(0), asked(1, arrives=3, length=20)]

    play(staged(None, uploads=uploads), requests, each_turn=lambda: counts.append(uploads.count))

    assert {now - was for was, now in pairwise(counts)} == {1}


def test_masks_are_made_while_the_device_works() -> None:
    """After the launch, and before anything of its result is looked at: NaN would end the sequence."""
    events: list[str] = []

    class Grammar:
        def clone(self) -> "Grammar":
            return self

        def mask(self) -> Tensor:
            events.append("mask")
            return torch.ones(VOCAB, dtype=torch.bool)

        def advance(self, token_id: int) -> None:
            """Anything goes."""

    class Noticed(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (Tensor.tolist, Tensor.item, Tensor.__bool__):
                events.append("read")
            return super().__torch_function__(func, types, args, kwargs or {})

    def launch(_: int, logits: Tensor) -> Tensor:
        events.append("launch")
        return logits.as_subclass(Noticed)

    stage = staged(Altering(launch))
    sequences = decoding(stage, 2)
    for sequence in sequences:
        sequence.constraint = Grammar()  # type: ignore[assignment]
    stage.runner.run(singles(sequences))
    events.clear()

    samples = stage.runner.run(singles(sequences))

    assert events[:3] == ["launch", "mask", "mask"]
    assert "read" in events
    assert all(sample.tokens for sample in samples)
    stage.finisher.close()


def test_logits_lie_in_the_same_memory_at_every_replay() -> None:
    graphs, _, eager = counting_graphs(Recorder())
    graphs.logits([3], [PagedRow(0, 1, 4, [0, 1])], eager=eager([3]))

    first = graphs.logits([4], [PagedRow(0, 1, 5, [0, 1])], eager=eager([4]))
    address, row = first.data_ptr(), first.clone()
    second = graphs.logits([6], [PagedRow(0, 1, 6, [0, 1])], eager=eager([6]))

    assert second.data_ptr() == address
    assert (int(row.argmax()), int(second.argmax())) == (4, 6)


def test_where_nothing_can_be_captured_it_is_tried_once_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    capture = Refusing()
    requests = [asked(n, outputs=5 + n) for n in range(3)]

    with caplog.at_level(logging.WARNING, logger="footnote.generation"):
        assert play(staged(capture), requests) == alone(requests)
        assert play(staged(capture), requests) == alone(requests), "the next engine"

    assert capture.asked == 1 and not capture.trusted
    assert [record.message for record in caplog.records] == [
        "decode steps cannot be run as CUDA graphs here; they are launched kernel by kernel"
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="here there is a device to capture on")
def test_without_a_device_the_real_capture_is_given_up() -> None:
    capture = CudaCapture()
    requests = [asked(0), asked(1)]

    assert play(staged(capture), requests) == alone(requests)

    assert not capture.trusted


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_device_the_real_capture_holds_and_says_the_same() -> None:
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
    lost.begin(sequences[0], 20)

    with pytest.raises(DeviceLost):
        lost.run([Work(sequences[0], 1, sampled=True, drafts=(3,))])

    assert not capture.trusted
    healthy.finisher.close()


def counting_graphs(
    capture: Capture, *, batches: Sequence[int] = (1, 2), lengths: Sequence[int] = (8, 16)
) -> tuple[DecodeGraphs, list[str], Callable[[Sequence[int]], Callable[[], Tensor]]]:
    """Graphs of a model whose likeliest token is the last one, and is sick at token 7; steps run eagerly are listed."""
    pages = memory_of(loaded(ROOMY), block_tokens=4, layout="pages", prefix_cache=True, poison=True)
    assert isinstance(pages, Pages)
    table = torch.eye(VOCAB)
    table[7] = float("nan")
    eagerly: list[str] = []

    def forward(inputs: StepInputs) -> Tensor:
        return table[inputs.ids[0]]

    def eager(ids: Sequence[int]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            eagerly.append(f"{len(ids)}")
            return table[torch.tensor(ids)]

        return run

    return DecodeGraphs(forward, pages.cache.tensors, capture, batches=batches, lengths=lengths), eagerly, eager


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


def test_a_model_that_is_not_well_decides_nothing_about_graphs() -> None:
    capture = Recorder()
    graphs, eagerly, eager = counting_graphs(capture)

    assert graphs.logits([7], rows_of(3), eager=eager([7])).isnan().all()
    assert capture.trusted
    graphs.logits([7, 5], rows_of(3, 3), eager=eager([7, 5]))  # one row can tell
    again = graphs.logits([5, 7], rows_of(3, 3), eager=eager([5, 7]))

    assert capture.trusted
    assert eagerly == ["1", "2"]
    assert again[0].argmax() == 5 and again[1].isnan().all()
