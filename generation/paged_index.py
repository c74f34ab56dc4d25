"""The index tensors that locate a step's tokens in the paged cache, copied to the device at once.

Attention over rows of few queries (decoding, verifying drafts) and of many (prefill) are different
work; which kernel serves a row depends on that row alone, so its result does not depend on its neighbours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from generation.paged_cache import PagedTensors

# Rows of at most this many queries are "short": their keys are split among programs. Room for 15 drafts.
SHORT_QUERIES = 16
# Keys per split. Fixed, never derived from the batch or the device: a sum split elsewhere rounds
# elsewhere, and a sequence's tokens would depend on the other sequences of the batch.
SPLIT_KEYS = 256
# What the kernels read of a row: start, queries, past, first entry in `blocks`, queries of its kind before it.
ROW_FIELDS = 5

Ints = npt.NDArray[np.int32]
Upload = Callable[[Ints, Tensor], None]


def upload(numbers: Ints, target: Tensor) -> None:
    """Copy [n] numbers into [n] int32 on the device, without waiting for the device: the one copy of a step."""
    # Fresh pinned memory each time: torch holds it back until the copy is done, so nothing waits.
    staging = torch.empty(numbers.size, dtype=torch.int32, pin_memory=target.device.type == "cuda")
    staging.numpy()[:] = numbers
    target.copy_(staging, non_blocking=True)


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
        slots: [T]; where each token is stored: block * block_tokens + offset.
        blocks: The rows' block tables one after the other.
        short: [n, ROW_FIELDS]; the rows of at most SHORT_QUERIES queries.
        long: [m, ROW_FIELDS]; the others.
        short_tokens: [s, 2]; packed index and position of the short rows' queries.
        carried: [c]; other numbers of the step, as given.
        splits: Ranges of SPLIT_KEYS keys that the longest short row has, or has room for.
    """

    def __init__(
        self,
        tensors: PagedTensors,
        rows: Sequence[PagedRow],
        *,
        reserve_tokens: int = 0,
        carried: Sequence[int] = (),
        upload: Upload = upload,
    ) -> None:
        """Build the index.

        Args:
            tensors: The cache that the rows' blocks belong to.
            rows: At least one, packed in order without gaps.
            reserve_tokens: Leave room for `refill` with rows of up to this length each.
            carried: Other numbers the step needs on the device, sent in the same copy; below 2 ** 31.
            upload: Makes that copy.
        """
        self._tensors = tensors
        self._block_tokens = tensors.block_tokens
        self._upload = upload
        longest = max((row.length for row in rows if _is_short(row)), default=0)
        self.splits = -(-max(longest, reserve_tokens) // SPLIT_KEYS)
        parts = self._arrays(rows, carried)
        entries = sum(self._blocks_for(max(row.length, reserve_tokens)) for row in rows)
        self._sizes = [part.size for part in parts[:-1]] + [entries]
        self._buffer = torch.empty(sum(self._sizes), dtype=torch.int32, device=tensors.device)
        if reserve_tokens:
            self._buffer.fill_(tensors.trash)  # unfilled entries name a block that no sequence holds
        slots, short, long, short_tokens, self.carried, self.blocks = torch.split(self._buffer, self._sizes)
        self.slots = slots
        self.short = short.view(-1, ROW_FIELDS)
        self.long = long.view(-1, ROW_FIELDS)
        self.short_tokens = short_tokens.view(-1, 2)
        self._fill(rows, parts)

    @property
    def tables(self) -> list[Tensor]:
        """Per row, the blocks in use: views of `blocks`."""
        counts = [self._blocks_for(row.length) for row in self.rows]
        return list(torch.split(self.blocks[: sum(counts)], counts))

    def refill(self, rows: Sequence[PagedRow], *, carried: Sequence[int] = ()) -> None:
        """Describe other rows in the same device memory, as a captured graph needs it.

        They have as many queries each as the rows the index was built for, and fit its reserve; `carried`
        is as long as it was.
        """
        assert [row.stop for row in rows] == [row.stop for row in self.rows], "a batch of another shape"
        longest = max((row.length for row in rows if _is_short(row)), default=0)
        assert longest <= self.splits * SPLIT_KEYS, "a sequence longer than the reserve"
        parts = self._arrays(rows, carried)
        assert [part.size for part in parts[:-1]] == self._sizes[:-1], "a batch of another shape"
        assert parts[-1].size <= self._sizes[-1], "more blocks than the reserve"
        self._fill(rows, parts)

    def _fill(self, rows: Sequence[PagedRow], parts: list[Ints]) -> None:
        self.rows = tuple(rows)
        packed = np.concatenate(parts)
        self._upload(packed, self._buffer[: packed.size])

    def _arrays(self, rows: Sequence[PagedRow], carried: Sequence[int]) -> list[Ints]:
        """Slots, short rows, long rows, short tokens, `carried` and blocks: flat, in the buffer's order."""
        _check(rows, self._tensors)
        fields = np.array([(row.start, row.stop - row.start, row.past, 0, 0) for row in rows], dtype=np.int32)
        starts, counts, pasts = fields[:, 0], fields[:, 1], fields[:, 2]
        used = -(-(pasts + counts) // self._block_tokens)
        tables = [np.asarray(row.blocks)[:count] for row, count in zip(rows, used.tolist(), strict=True)]
        blocks = np.concatenate(tables).astype(np.int32, copy=False)
        # A wrong index here would read another sequence's memory there.
        assert 0 <= blocks.min() <= blocks.max() <= self._tensors.trash, "a block that does not exist"
        is_short = counts <= SHORT_QUERIES
        fields[:, 3] = entries = used.cumsum() - used
        for kind in (is_short, ~is_short):
            own = counts[kind]
            fields[kind, 4] = own.cumsum() - own
        owners = np.arange(len(rows)).repeat(counts)
        tokens = np.empty((owners.size, 2), dtype=np.int32)  # packed index and position of each
        tokens[:, 0] = np.arange(owners.size)
        tokens[:, 1] = positions = tokens[:, 0] + (pasts - starts)[owners]
        slots = blocks[entries[owners] + positions // self._block_tokens]
        slots = slots * self._block_tokens + positions % self._block_tokens
        parts = (slots, fields[is_short], fields[~is_short], tokens[is_short[owners]], np.asarray(carried), blocks)
        return [part.ravel().astype(np.int32, copy=False) for part in parts]

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self._block_tokens)


def _is_short(row: PagedRow) -> bool:
    return row.stop - row.start <= SHORT_QUERIES


def _check(rows: Sequence[PagedRow], tensors: PagedTensors) -> None:
    """Assert the preconditions of the kernels."""
    assert (tensors.trash + 1) * tensors.block_tokens < 2**31, "slots are 32 bits wide"
    assert rows, "a step without rows"
    stop = 0
    for row in rows:
        assert row.start == stop < row.stop, "rows are packed in order, none of them empty"
        assert row.past >= 0, "a position before the first"
        assert row.length <= len(row.blocks) * tensors.block_tokens, "a block table too short for its row"
        stop = row.stop
