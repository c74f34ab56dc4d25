"""generation.graphs: replayed decode steps give the tokens of eager steps, or are switched off."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from generation.paged_index import PagedRow
from generation.scheduler import ScheduledTokens
from generation.sequence import SequenceState
from tests.generation.graphed import alone, asked, counting_graphs, decoding, play, staged
from tests.generation.recorder import Altering, CountedUploads, Recorder
from tests.generation.tiny import CONFIGS, VOCAB

torch.set_num_threads(1)


def singles(sequences: Sequence[SequenceState]) -> list[ScheduledTokens[SequenceState]]:
    return [ScheduledTokens(sequence, 1, sampled=True, is_decode=True) for sequence in sequences]


def test_replays_over_changing_batch_sizes_give_the_tokens_of_each_sequence_alone() -> None:
    capture = Recorder()
    requests = [asked(n, outputs=4 + 5 * (n % 4), arrives=2 * n) for n in range(11)]

    assert play(staged(capture), requests) == alone(requests)

    assert capture.trusted
    assert [recording.output.shape[0] for recording in capture.recordings] == [1, 2, 4, 8]
    assert capture.replays > 12


def test_replays_with_preempted_sequences_give_the_tokens_of_each_alone() -> None:
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

    for plan in (
        drafted,
        [*plain, ScheduledTokens(new, 5, sampled=False)],
        [*plain, ScheduledTokens(new, 1, sampled=False)],
    ):
        stage.runner.run(plan)
        assert capture.replays == replays
    stage.runner.run(plain)

    assert capture.replays == replays + 1
    stage.finisher.close()


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
