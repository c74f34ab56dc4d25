"""Where the tokens of a step live in the paged cache: index tensors on the device, from one copy.

Attention over rows of few queries (decoding, verifying drafts) and of many (prefill) are different
work; which kernel serves a row depends on that row alone, so its result does not depend on its neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from generation.paged_cache import PagedTensors

# Rows of at most this many queries are "short": their keys are split among programs. Room for 15 drafts.
SHORT_QUERIES = 16
# Keys per split. Fixed, never derived from the batch or the device: a sum split elsewhere rounds
# elsewhere, and a sequence's tokens would depend on who is in the batch with it.
SPLIT_KEYS = 256
# What the kernels read of a row: start, queries, past, first entry in `blocks`, queries of its kind before it.
ROW_FIELDS = 5

_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PagedRow:
    """One sequence's share of a step: queries `start`…`stop` of the packed tokens, at position `past` onwards.

    `blocks` is the sequence's block table, with room for at least `past + stop - start` tokens.
    """

    start: int
    stop: int
    past: int
    blocks: Sequence[int]

    @property
    def length(self) -> int:
        """Tokens of the sequence once this step is stored."""
        return self.past + self.stop - self.start


class PagedIndex:
    """Index tensors of a step, int32, all views of one device buffer.

    Attributes:
        rows: As given.
        tables: Per row, the blocks in use: views of `blocks`.
        slots: [T]; where each token is stored: block * block_tokens + offset.
        blocks: The rows' block tables one after the other.
        short: [n, ROW_FIELDS]; the rows of at most SHORT_QUERIES queries.
        long: [m, ROW_FIELDS]; the others.
        short_tokens: [s, 2]; packed index and position of the short rows' queries.
        splits: Ranges of SPLIT_KEYS keys that the longest short row has, or has room for.
    """

    def __init__(self, tensors: PagedTensors, rows: Sequence[PagedRow], *, reserve_tokens: int = 0) -> None:
        """Build the index.

        Args:
            tensors: The cache that the rows' blocks belong to.
            rows: At least one, packed in order without gaps.
            reserve_tokens: Leave room for `refill` with rows of up to this length each.
        """
        self._block_tokens = tensors.block_tokens
        self._trash = tensors.trash
        self._device = tensors.device
        _check(rows, tensors)
        longest = max((row.length for row in rows if _is_short(row)), default=0)
        self.splits = -(-max(longest, reserve_tokens) // SPLIT_KEYS)
        entries = sum(self._blocks_for(max(row.length, reserve_tokens)) for row in rows)
        parts = self._arrays(rows)
        self._sizes = [part.size for part in parts[:-1]] + [entries]
        self._buffer = torch.empty(sum(self._sizes), dtype=torch.int32, device=self._device)
        slots, short, long, short_tokens, self.blocks = torch.split(self._buffer, self._sizes)
        self.slots = slots
        self.short = short.view(-1, ROW_FIELDS)
        self.long = long.view(-1, ROW_FIELDS)
        self.short_tokens = short_tokens.view(-1, 2)
        self._fill(rows, parts)

    def refill(self, rows: Sequence[PagedRow]) -> None:
        """Describe other rows in the same device memory, as a captured graph needs it.

        They have as many queries each as the rows the index was built for, and fit its reserve.
        """
        assert [row.stop for row in rows] == [row.stop for row in self.rows], "a batch of another shape"
        longest = max((row.length for row in rows if _is_short(row)), default=0)
        assert longest <= self.splits * SPLIT_KEYS, "a sequence longer than the reserve"
        parts = self._arrays(rows)
        assert parts[-1].size <= self._sizes[-1], "more blocks than the reserve"
        self._fill(rows, parts)

    def _fill(self, rows: Sequence[PagedRow], parts: list[_Ints]) -> None:
        self.rows = tuple(rows)
        # Fresh pinned memory each time: torch holds it back until the copy is done, so nothing waits.
        staging = torch.full(
            (sum(self._sizes),), self._trash, dtype=torch.int32, pin_memory=self._device.type == "cuda"
        )
        packed = np.concatenate(parts)
        staging.numpy()[: packed.size] = packed
        self._buffer.copy_(staging, non_blocking=True)
        self.tables: list[Tensor] = []
        taken = 0
        for row in rows:
            count = self._blocks_for(row.length)
            self.tables.append(self.blocks[taken : taken + count])
            taken += count

    def _arrays(self, rows: Sequence[PagedRow]) -> list[_Ints]:
        """Slots, short rows, long rows, short tokens and blocks: flat, in the buffer's order."""
        slots: list[_Ints] = []
        tokens: list[_Ints] = []
        tables: list[_Ints] = []
        kinds: dict[bool, list[tuple[int, ...]]] = {True: [], False: []}
        before = {True: 0, False: 0}
        entry = 0
        for row in rows:
            table = np.asarray(row.blocks[: self._blocks_for(row.length)], dtype=np.int32)
            positions = np.arange(row.past, row.length, dtype=np.int32)
            slots.append(table[positions // self._block_tokens] * self._block_tokens + positions % self._block_tokens)
            kind, count = _is_short(row), row.stop - row.start
            kinds[kind].append((row.start, count, row.past, entry, before[kind]))
            if kind:
                tokens.append(np.stack([np.arange(row.start, row.stop, dtype=np.int32), positions], axis=1).ravel())
            before[kind] += count
            tables.append(table)
            entry += table.size
        short, long = (np.array(kinds[kind], dtype=np.int32).ravel() for kind in (True, False))
        none = np.empty(0, dtype=np.int32)
        return [np.concatenate(slots), short, long, np.concatenate([none, *tokens]), np.concatenate(tables)]

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self._block_tokens)


def _is_short(row: PagedRow) -> bool:
    return row.stop - row.start <= SHORT_QUERIES


def _check(rows: Sequence[PagedRow], tensors: PagedTensors) -> None:
    """Assert what the kernels rely on: a wrong index here is a read of someone else's memory there."""
    assert (tensors.trash + 1) * tensors.block_tokens < 2**31, "slots are 32 bits wide"
    assert rows, "a step without rows"
    stop = 0
    for row in rows:
        assert row.start == stop < row.stop, "rows are packed in order, none of them empty"
        assert row.past >= 0, "a position before the first"
        assert row.length <= len(row.blocks) * tensors.block_tokens, "a block table too short for its row"
        assert all(0 <= block <= tensors.trash for block in row.blocks), "a block that does not exist"
        stop = row.stop
