"""generation.device_masks sends a mask once, and never takes one for another."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from generation import device_masks
from generation.device_masks import DeviceMasks

VOCAB = 50
CPU = torch.device("cpu")


def mask(number: int) -> Tensor:
    return torch.arange(VOCAB) % (number + 2) == 0


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many masks were sent, each time some were."""
    counts: list[int] = []
    to_device = device_masks.to_device

    def counted(numbers, device):
        if numbers.dtype == bool:
            counts.append(len(numbers))
        return to_device(numbers, device)

    monkeypatch.setattr(device_masks, "to_device", counted)
    return counts


def rows(masks: DeviceMasks, wanted: Sequence[Tensor | None]) -> list[Tensor]:
    slots = masks.slots(wanted, vocabulary=VOCAB, device=CPU)
    return list(masks.table.index_select(0, torch.tensor(slots)))


def assert_right(found: list[Tensor], wanted: Sequence[Tensor | None]) -> None:
    everything = torch.ones(VOCAB, dtype=torch.bool)
    for row, one in zip(found, wanted, strict=True):
        assert torch.equal(row, everything if one is None else one)


def test_a_mask_that_comes_again_is_not_sent_again(sent):
    masks, shared = DeviceMasks(), [mask(0), mask(1)]

    for wanted in ([shared[0], None, shared[1]], [shared[1], shared[1], None], [shared[0]]):
        assert_right(rows(masks, wanted), wanted)

    assert sent == [2]


def test_a_mask_in_the_memory_of_one_that_is_gone_is_another(sent):
    """As those of JSON are: each is made for one step, and the next may get its address and its id."""
    masks = DeviceMasks()

    for number in range(20):
        wanted: list[Tensor | None] = [mask(number)]
        assert_right(rows(masks, wanted), wanted)
        del wanted

    assert sent == [1] * 20


def test_more_masks_than_there_is_room_for_drop_those_wanted_longest_ago(monkeypatch, sent):
    monkeypatch.setattr(device_masks, "_MASKS", 8)
    masks, known = DeviceMasks(), [mask(number) for number in range(12)]

    for number in range(12):
        wanted = [known[0], known[number]]
        assert_right(rows(masks, wanted), wanted)
    assert_right(rows(masks, known[:1]), known[:1])

    assert sum(sent) == 12, "the one that was always wanted stayed"
    assert_right(rows(masks, known[1:2]), known[1:2])
    assert sum(sent) == 13, "the first of the others had gone"


def test_a_step_with_more_masks_than_the_table_has_rows_enlarges_it(monkeypatch):
    monkeypatch.setattr(device_masks, "_MASKS", 4)
    masks, known = DeviceMasks(), [mask(number) for number in range(20)]

    assert_right(rows(masks, known), known)
    assert_right(rows(masks, known[::-1]), known[::-1])
