"""The memory of this machine or container: how much there is, and whether it runs short."""

import ctypes
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SHORT = 0.1
_SHARE = 8
_ENOUGH = 1 << 30
_WINDOWS = 2


@dataclass(frozen=True, slots=True)
class HostMemory:
    """How much memory there is, in bytes, and how much of it is available.

    `stalled` is the share of the last ten seconds in which a process waited for memory (the kernel's pressure stall
    information, PSI, Documentation/accounting/psi.rst); 0 where the kernel does not tell.
    """

    total: int
    available: int
    stalled: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether less than a tenth is available, or processes wait for memory a tenth of the time."""
        return self.available < self.total * _SHORT or self.stalled >= _SHORT


def read_host_memory(*, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> HostMemory:
    """Read the memory of the machine, or of the container where its limit is tighter (control groups, version 2).

    Args:
        proc: The kernel's folder of processes.
        cgroups: The folder of the control groups.
    """
    machine = psutil.virtual_memory()
    found = HostMemory(int(machine.total), int(machine.available), _stalled(proc / "pressure" / "memory"))
    for group in _groups(proc / "self" / "cgroup", cgroups):
        limit, used = _number(group / "memory.max"), _number(group / "memory.current")
        if limit is None or used is None:
            continue
        # The kernel takes file pages back before it refuses memory, so they count as available.
        free = max(0, limit - used + _statistic(group / "memory.stat", "inactive_file"))
        stalled = max(found.stalled, _stalled(group / "memory.pressure"))
        found = HostMemory(min(found.total, limit), min(found.available, free), stalled)
    return found


def default_cache_bytes(memory: HostMemory, *, window_bytes: int) -> int:
    """The limit of keys and values on a CPU where none is set.

    At most an eighth of the memory and half of what is available; within that a gibibyte, or room for two sequences
    that fill the context window, whichever is more.

    Args:
        memory: As it is once the weights are loaded.
        window_bytes: Keys and values of a sequence that fills the context window.
    """
    wanted = max(_ENOUGH, _WINDOWS * window_bytes)
    return min(wanted, memory.total // _SHARE, memory.available // 2)


def return_freed_memory() -> None:
    """Give what the process has freed back to the system; does nothing where the C library cannot."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _groups(membership: Path, cgroups: Path) -> list[Path]:
    """The folders of the control group of this process and of those around it."""
    try:
        lines = membership.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        if line.startswith("0::/"):
            inner = cgroups / line.removeprefix("0::/")
            return [inner, *(folder for folder in inner.parents if folder.is_relative_to(cgroups))]
    return []


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" is no limit
        return None


def _statistic(file: Path, name: str) -> int:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)


def _stalled(file: Path) -> float:
    """`avg10` of the line `some avg10=0.12 avg60=…`, as a share."""
    try:
        text = file.read_text(encoding="ascii")
        return float(text.partition("some avg10=")[2].split()[0]) / 100
    except (OSError, ValueError, IndexError):
        return 0.0
