"""Masks of constraints on an accelerator, where each is sent once, and copies that nothing waits for."""

import weakref
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_MASKS = 256  # kept at a time, one byte a token


def to_device(numbers: npt.NDArray[Any], device: torch.device) -> Tensor:
    """A copy on the device, without waiting for it."""
    # Fresh pinned memory each time, which torch holds back until the copy is done.
    source = torch.from_numpy(numbers)
    staging = torch.empty(source.shape, dtype=source.dtype, pin_memory=device.type == "cuda")
    return staging.copy_(source).to(device, non_blocking=True)


class DeviceMasks:
    """Masks on a device, each sent once for as long as the constraint that made it keeps it. One thread's.

    A mask is known by its identity: those of citations are shared and come again, those of schemas are new each time.
    """

    def __init__(self) -> None:
        self._slots: OrderedDict[int, tuple[weakref.ref[Tensor], int]] = OrderedDict()  # by id, the oldest first
        self._table = torch.empty(0, 0, dtype=torch.bool)

    def slots(self, masks: Sequence[Tensor | None], *, vocabulary: int, device: torch.device) -> list[int]:
        """For each mask, [V] bool on the CPU, its row of `table`; 0, which allows everything, where there is none."""
        wanted = {id(mask): mask for mask in masks if mask is not None}
        if self._table.shape != (room := self._room(len(wanted)), vocabulary) or self._table.device != device:
            self._table = torch.ones((room, vocabulary), dtype=torch.bool, device=device)
            self._slots.clear()
        fresh = [mask for key, mask in wanted.items() if not self._has(key, mask)]
        free = iter(self._free(len(fresh), kept=wanted.keys()))
        places = []
        for mask in fresh:
            places.append(next(free))
            self._slots[id(mask)] = (weakref.ref(mask), places[-1])
        if fresh:
            host = np.stack([mask.numpy() for mask in fresh])
            where = to_device(np.array(places, dtype=np.int64), device)
            self._table.index_copy_(0, where, to_device(host, device))
        return [0 if mask is None else self._slots[id(mask)][1] for mask in masks]

    @property
    def table(self) -> Tensor:
        """[m, V] bool."""
        return self._table

    def _room(self, count: int) -> int:
        return max(_MASKS, self._table.shape[0], 1 << (count + 1).bit_length())

    def _has(self, key: int, mask: Tensor) -> bool:
        """Whether it is there; an id alone may be that of a mask which is gone."""
        known = self._slots.pop(key, None)
        if known is None or known[0]() is not mask:
            return False
        self._slots[key] = known  # the latest now
        return True

    def _free(self, count: int, *, kept: Collection[int]) -> list[int]:
        """Rows of the table for as many masks: unused ones, then those of the masks that were wanted longest ago."""
        used = {slot for _, slot in self._slots.values()}
        found = [slot for slot in range(1, self._table.shape[0]) if slot not in used][:count]
        for key in list(self._slots):
            if len(found) == count:
                break
            if key not in kept:
                found.append(self._slots.pop(key)[1])
        return found
