"""generation.batched_draws gives every row of a step the reference's token, in few kernels and with one wait."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from generation import batched_draws
from generation.batched_draws import BatchedDraws
from generation.draws import SamplingRow, draw_rows
from generation.sampling import draw
from generation.types import Abstention, SamplingParams
from tests.generation.graphed import asked, play, staged
from tests.generation.kernel_count import KernelCount
from tests.generation.test_draws import VOCAB, any_row

torch.set_num_threads(1)

INF, NAN = float("inf"), float("nan")
ROWS = 64
# Shares off the sums of the weights below, so that rounding decides nothing.
TOP_PS = (1.0, 0.0517, 0.2931, 0.5113, 0.7919, 0.9013, 0.9973)


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_all_kinds_are_drawn_together_as_the_reference_draws_them(seed: int) -> None:
    choice = random.Random(seed)
    rows = [any_row(choice) for _ in range(32)]
    logits = torch.randn(32, VOCAB, generator=torch.Generator().manual_seed(seed)) * 3
    logits[5], logits[11, 7], logits[12, 3] = -INF, NAN, INF
    before = logits.clone()

    together = BatchedDraws()(logits, rows)

    assert together == draw_rows(logits, rows)
    assert together[5].token is together[11].token is together[12].token is None
    assert torch.equal(logits.nan_to_num(), before.nan_to_num())


sampled = st.builds(
    SamplingParams,
    max_tokens=st.just(1),
    temperature=st.sampled_from([0.0, 0.3, 0.7, 1.0, 2.5, 50.0]),
    min_p=st.sampled_from([0.0, 0.0, 0.0517, 0.2931]),
    top_k=st.sampled_from([0, 0, 1, 4, 11, 12, 13, 40, 500]),
    top_p=st.sampled_from(TOP_PS),
    repetition_penalty=st.sampled_from([1.0, 1.0, 0.7, 1.31]),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.5, -1.1]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 0.31]),
    logit_bias=st.sampled_from([(), (), ((3, 5.3), (4, -100.0), (10_000, 1.0))]),
    allowed_tokens=st.sampled_from([None, None, (0, 3, 9, 17, 10_000), (10_000,)]),
)
rows_of_any_kind = st.builds(
    SamplingRow,
    params=sampled,
    seed=st.integers(-(2**70), 2**70),
    position=st.integers(0, 2**40),
    prompt=st.lists(st.integers(0, 80), max_size=9),
    output=st.lists(st.integers(0, 80), max_size=9),
    mask=st.none() | st.sampled_from([2, 3, 5]).map(lambda step: torch.arange(60) % step == 0),
    abstention=st.none() | st.builds(Abstention, tokens=st.just((3, 4)), threshold=st.none() | st.just(0.03)),
)


@settings(deadline=None)
@given(
    rows=st.lists(rows_of_any_kind, min_size=1, max_size=7),
    seed=st.integers(0, 2**31),
    impossible=st.sampled_from([0.0, 0.1, 0.9, 1.0]),
)
def test_any_rows_get_the_references_tokens_with_ties_and_more_kept_than_there_are_candidates(
    rows: list[SamplingRow], seed: int, impossible: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Eighths, so that ties are common, at the candidates' edge too.
    logits = torch.randint(-24, 25, (len(rows), 60), generator=generator) / 8
    logits[torch.rand(logits.shape, generator=generator) < impossible] = -INF
    candidates, batched_draws._CANDIDATES = batched_draws._CANDIDATES, 12  # noqa: SLF001 - hypothesis has no fixtures
    try:
        together = BatchedDraws()(logits, rows)
    finally:
        batched_draws._CANDIDATES = candidates  # noqa: SLF001 - as above

    for got, expected in zip(together, draw_rows(logits, rows), strict=True):
        assert got.token == expected.token
        assert got.abstention == expected.abstention or got.abstention == pytest.approx(expected.abstention, abs=1e-12)


def spiky(rows: int, vocabulary: int, *, seed: int) -> Tensor:
    """[rows, vocabulary] logits by Zipf's law, as those of a language model are: few tokens are likely."""
    generator = torch.Generator().manual_seed(seed)
    ranks = torch.stack([torch.randperm(vocabulary, generator=generator) for _ in range(rows)])
    return -2 * (1 + ranks).log() + 0.1 * torch.randn(ranks.shape, generator=generator)


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0.7, "top_p": 0.9013},
        {"temperature": 1.0},
        {"temperature": 1.0, "top_k": 50, "top_p": 0.7919},
        {"temperature": 1.0, "min_p": 0.05},
    ],
    ids=str,
)
def test_a_large_vocabulary_is_drawn_alike_and_mostly_from_the_candidates(params: dict[str, Any]) -> None:
    logits = spiky(16, 20_000, seed=1)
    rows = [sampling(seed=n, **params) for n in range(16)]
    with Sorted() as sizes:
        together = BatchedDraws()(logits, rows)

    assert together == draw_rows(logits, rows)
    assert sum(shape[0] for shape in sizes.shapes if shape[1] == 20_000) <= 2


def test_rows_flatter_than_the_candidates_are_drawn_alike_and_not_one_by_one() -> None:
    logits = torch.randn(40, 20_000, generator=torch.Generator().manual_seed(2))
    rows = [sampling(seed=n, temperature=1.0, top_p=0.9013) for n in range(40)]
    with Sorted() as sizes:
        together = BatchedDraws()(logits, rows)

    assert together == draw_rows(logits, rows)
    assert [shape[0] for shape in sizes.shapes if shape[1] == 20_000] == [16, 16, 8]


class Sorted(TorchDispatchMode):
    """Writes down the shapes that are sorted."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.sort.stable:
            self.shapes.append(tuple(args[0].shape))
        return func(*args, **(kwargs or {}))


def sampling(*, seed: int = 1, mask: Tensor | None = None, **params: Any) -> SamplingRow:
    return SamplingRow(SamplingParams(max_tokens=1, **params), seed, 7, (1, 2, 3), (4, 5), mask)


@pytest.fixture
def meta_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[SamplingRow]], tuple[int, int, int]]:
    """Kernels, copies to the device and waits of a second step over 64 rows of 152,000 logits, on the meta device."""
    waits: list[int] = []

    def tolist(tensor: Tensor) -> list[float]:
        waits.append(1)
        return [1.0] * tensor.numel()

    def step(rows: list[SamplingRow]) -> tuple[int, int, int]:
        logits, draws = torch.empty((ROWS, 152_000), device="meta"), BatchedDraws()
        draws(logits, rows)
        waits.clear()
        with KernelCount() as counted:
            draws(logits, rows)
        return counted.kernels.total(), counted.copies, len(waits)

    monkeypatch.setattr(Tensor, "tolist", tolist)
    return step


MASKS = [torch.arange(152_000) % step > 0 for step in range(2, 8)]


@pytest.mark.parametrize(
    ("params", "masks", "most"),
    [
        ({}, 0, 6),
        ({}, 6, 10),
        ({"temperature": 1.0}, 0, 36),
        ({"temperature": 0.7, "top_p": 0.9}, 0, 60),
        ({"temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.01}, 6, 67),
        ({"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.1, "presence_penalty": 0.5}, 0, 72),
    ],
    ids=str,
)
def test_64_rows_are_drawn_in_few_kernels_two_copies_and_one_wait(
    params: dict[str, Any], masks: int, most: int, meta_step: Callable[[list[SamplingRow]], tuple[int, int, int]]
) -> None:
    """Masks that citations share are on the device since the first step."""
    rows = [sampling(seed=n, mask=MASKS[n % masks] if masks else None, **params) for n in range(ROWS)]

    kernels, copies, waits = meta_step(rows)

    assert waits == 1
    assert kernels <= most
    assert copies <= 2


def test_a_draw_of_the_reference_does_not_wait_for_the_device() -> None:
    """On the meta device whatever reads a number is an error."""
    ids = torch.arange(50, device="meta")

    token = draw(torch.empty(50, dtype=torch.float64, device="meta"), ids, seed=1, position=2)

    assert token.shape == () and token.dtype == torch.int64


def test_sequences_drawn_together_say_what_each_says_alone() -> None:
    requests = [asked(n, outputs=12, arrives=n % 3) for n in range(6)]
    batched = staged(None)
    batched.runner._draw_rows = BatchedDraws()  # noqa: SLF001 - as on a GPU

    assert play(batched, requests) == play(staged(None), requests)


def test_no_rows_give_no_draws() -> None:
    assert BatchedDraws()(torch.empty(0, 5), []) == []
