"""Stages with recorded steps in place of CUDA graphs."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from generation.graphs import Capture, DecodeGraphs
from generation.memory import Layout, Pages, StepInputs, memory_of
from generation.sequence import SequenceState
from tests.generation.recorder import CountedUploads
from tests.generation.stage import Asked, Stage, loaded, solo_tokens
from tests.generation.tiny import VOCAB

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
