"""Captures on a CPU that stand in for CUDA graphs: a faithful one, and some that are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from generation.graphs import Recording
from generation.paged_index import Ints, upload

# What waits for the device, so that a capture refuses it.
_ITEM = torch.ops.aten._local_scalar_dense.default  # noqa: SLF001 - the operator's own name, behind `Tensor.item`
_WAITING = {_ITEM, torch.ops.aten.nonzero.default}


@dataclass
class Recorder:
    """A capture as CUDA makes it: the operations in order, each with the memory and the numbers it had.

    A replay runs these operations and nothing else. Python is not asked again, so a number that should have
    changed has not, and every result lies where it lay. To wait for the device is refused.
    """

    trusted: bool = True
    recordings: list[OperationList] = field(default_factory=list)

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `graphs.Capture.record`."""
        work()
        operations = OperationList()
        with operations:
            operations.output = work()
        self.recordings.append(operations)
        return operations

    @property
    def replays(self) -> int:
        """Of all recordings."""
        return sum(recording.replays for recording in self.recordings)


class OperationList(TorchDispatchMode):
    """Writes down the operations that run below it."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self.replays = 0
        self.output = torch.empty(0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _WAITING:
            raise RuntimeError(f"{func} is not permitted while capturing")
        result = func(*args, **(kwargs or {}))
        self._operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self) -> Tensor:
        """See `graphs.Recording.replay`."""
        self.replays += 1
        for func, args, kwargs, result in self._operations:
            again = func(*args, **kwargs)
            for kept, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(kept, Tensor) and kept.data_ptr() != new.data_ptr():
                    kept.copy_(new)
        return self.output

    @property
    def addresses(self) -> list[int]:
        """Where everything lies that it reads and writes."""
        leaves = tree_leaves([operation[1:] for operation in self._operations])
        return [leaf.data_ptr() for leaf in leaves if isinstance(leaf, Tensor)]


@dataclass
class Refusing:
    """Nothing can be captured here."""

    trusted: bool = True
    asked: int = 0

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `graphs.Capture.record`."""
        self.asked += 1
        work()
        raise RuntimeError("operation not permitted when stream is capturing")


@dataclass
class Altering:
    """Passes every replay's result, numbered from 1, through `change`."""

    change: Callable[[int, Tensor], Tensor]
    trusted: bool = True
    inner: Recorder = field(default_factory=Recorder)
    replays: int = 0

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `graphs.Capture.record`."""
        return _Altered(self, self.inner.record(work))


@dataclass
class _Altered:
    capture: Altering
    recording: Recording

    def replay(self) -> Tensor:
        self.capture.replays += 1
        return self.capture.change(self.capture.replays, self.recording.replay())


@dataclass
class Deaf:
    """Replays give what the captured run gave, whatever lies in memory now."""

    trusted: bool = True

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `graphs.Capture.record`."""
        return _Constant(work().clone())


@dataclass
class _Constant:
    output: Tensor

    def replay(self) -> Tensor:
        return self.output


class CountedUploads:
    """Copies, and keeps where to."""

    def __init__(self) -> None:
        self.targets: list[int] = []

    @property
    def count(self) -> int:
        """Copies made."""
        return len(self.targets)

    def __call__(self, numbers: Ints, target: Tensor) -> None:
        self.targets.append(target.data_ptr())
        upload(numbers, target)
