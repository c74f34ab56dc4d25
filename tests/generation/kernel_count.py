"""Counts what would be launched on a GPU, on the meta device, which computes nothing and needs none."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch import Tensor
from torch._C import _is_alias_of  # type: ignore[attr-defined]
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_NOTHING = {"aten.empty", "aten.empty_like", "aten.empty_strided", "aten.new_empty"}


class KernelCount(TorchDispatchMode):
    """Counts the operations on a device that launch a kernel, by name, and copies from the host.

    Fresh memory launches none, nor does a view; what may be a view is none where its numbers are stored anew
    (`to`, `reshape`). A wait for a device that has no numbers is an error of torch's.
    """

    def __init__(self, device: str = "meta") -> None:
        super().__init__()
        self._device = device
        self.kernels: Counter[str] = Counter()
        self.copies = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, tuple | list) else result
        name = str(func.overloadpacket)
        if isinstance(first, Tensor) and first.device.type == self._device and name not in _NOTHING:
            sources = [one for one in tree_leaves(args) if isinstance(one, Tensor)]
            if sources and all(one.device.type == "cpu" for one in sources):
                self.copies += 1
            elif not (func.is_view and any(_is_alias_of(first, one) for one in sources)):
                self.kernels[name] += 1
        return result
