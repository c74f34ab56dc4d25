"""generation.host_memory: what a machine or a container has, and what the cache takes of it."""

from pathlib import Path

import psutil
import pytest

from generation.host_memory import HostMemory, default_cache_bytes, read_host_memory

GIB = 2**30


def kernel(folder: Path, files: dict[str, str]) -> tuple[Path, Path]:
    """Folders like /proc and /sys/fs/cgroup."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "proc", folder / "cgroup"


def read(folder: Path, files: dict[str, str]) -> HostMemory:
    proc, cgroups = kernel(folder, files)
    return read_host_memory(proc=proc, cgroups=cgroups)


def test_without_control_groups_it_is_the_machine(tmp_path):
    memory = read(tmp_path, {})

    assert memory.total == psutil.virtual_memory().total
    assert 0 < memory.available <= memory.total
    assert memory.stalled == 0


def test_the_tightest_group_around_the_process_counts(tmp_path):
    memory = read(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner\n",
            "cgroup/outer/inner/memory.max": "max\n",
            "cgroup/outer/inner/memory.current": "5\n",
            "cgroup/outer/memory.max": "100000\n",
            "cgroup/outer/memory.current": "90000\n",
            "cgroup/outer/memory.stat": "anon 1\ninactive_file 2000\n",
            "cgroup/outer/memory.pressure": "some avg10=12.50 avg60=3.00 avg300=1.00 total=9\nfull avg10=0.00\n",
        },
    )

    assert memory == HostMemory(total=100_000, available=12_000, stalled=0.125)


@pytest.mark.parametrize("text", ["", "some", "some avg10=", "some avg10=x avg60=1", "full avg10=99.0"])
def test_a_pressure_that_cannot_be_read_is_none(tmp_path, text):
    assert read(tmp_path, {"proc/pressure/memory": text}).stalled == 0


@pytest.mark.parametrize(
    ("available", "stalled", "short"), [(100, 0.0, False), (99, 0.0, True), (500, 0.0999, False), (500, 0.1, True)]
)
def test_memory_is_short_below_a_tenth_or_where_processes_wait_for_it(available, stalled, short):
    assert HostMemory(total=1000, available=available, stalled=stalled).is_short == short


@pytest.mark.parametrize(
    ("total", "available", "window", "expected"),
    [
        (24 * GIB, 20 * GIB, GIB // 3, GIB),  # the default generator: a gibibyte
        (4 * GIB, 3 * GIB, GIB // 3, GIB // 2),  # an eighth
        (24 * GIB, GIB, GIB // 3, GIB // 2),  # half of what is available
        (64 * GIB, 60 * GIB, 3 * GIB, 6 * GIB),  # two windows of a large model
        (24 * GIB, 20 * GIB, 3 * GIB, 3 * GIB),  # no more than an eighth for it either
    ],
)
def test_the_cache_takes_a_modest_part(total, available, window, expected):
    assert default_cache_bytes(HostMemory(total, available), window_bytes=window) == expected
