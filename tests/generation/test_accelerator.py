"""generation.accelerator says why there is no GPU and what its kernels lack."""

import sysconfig
from pathlib import Path

import pytest
import torch

from generation import accelerator
from generation.accelerator import driver_version, engine_stream, missing_compiler, why_no_gpu

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Sep 9 18:29:08 UTC 2025\nGCC version: 12"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with torch for CUDA 13 that sees no GPU: its driver is `version`, its devices are `dev/`."""
    (tmp_path / "dev").mkdir()
    monkeypatch.setattr(accelerator, "_DRIVER", tmp_path / "version")
    monkeypatch.setattr(accelerator, "_DEVICES", tmp_path / "dev")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def test_a_gpu_that_is_seen_needs_no_sentence(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    assert why_no_gpu() is None


def test_each_reason_for_no_gpu_has_its_sentence(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [why_no_gpu()]
    (machine / "version").write_text(VERSION.format("570.86.10"))
    said.append(why_no_gpu())
    (machine / "dev" / "nvidia0").touch()
    said.append(why_no_gpu())
    (machine / "version").write_text(VERSION.format("580.95.05"))
    said.append(why_no_gpu())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    said.append(why_no_gpu())
    monkeypatch.setattr(torch.version, "cuda", None)
    said.append(why_no_gpu())

    for sentence, words in zip(
        said,
        [
            "No NVIDIA driver is loaded",
            "570.86.10 is loaded, but /dev has no GPU",
            "570.86.10 is too old for CUDA 13.0, which needs 580",
            "cannot start CUDA 13.0 on the NVIDIA driver 580.95.05",
            "CUDA_VISIBLE_DEVICES hides the GPU",
            "was built without CUDA",
        ],
        strict=True,
    ):
        assert words in (sentence or ""), sentence


def test_the_drivers_version_is_read_from_the_kernel_open_modules_included(machine: Path) -> None:
    assert driver_version() is None
    (machine / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build"
    )

    assert driver_version() == "580.65.06"


def test_a_missing_compiler_and_missing_headers_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_paths", lambda **_: {"include": str(tmp_path)})
    without_compiler = missing_compiler()
    (tmp_path / "gcc").touch(0o755)
    without_headers = missing_compiler()
    (tmp_path / "Python.h").touch()

    assert "install gcc" in (without_compiler or "")
    assert "Python.h is missing" in (without_headers or "")
    assert missing_compiler() is None


def test_the_compiler_is_looked_for_where_triton_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_paths", lambda **_: {"include": str(tmp_path)})
    (tmp_path / "Python.h").touch()
    (tmp_path / "clang").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert missing_compiler() is None

    (tmp_path / "clang").unlink()
    monkeypatch.setenv("CC", "tcc")
    assert missing_compiler() is None


def test_on_a_cpu_no_stream_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Stream", None)

    with engine_stream(torch.device("cpu")):
        pass


def test_on_a_gpu_the_thread_works_on_a_stream_of_high_priority_behind_what_was_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[object] = []

    class Stream:
        def __init__(self, device: torch.device, *, priority: int) -> None:
            events.append((device.type, priority))

        def wait_stream(self, other: object) -> None:
            events.append(("waits for", other))

    class Current:
        def __init__(self, stream: object) -> None:
            assert isinstance(stream, Stream)

        def __enter__(self) -> None:
            events.append("enter")

        def __exit__(self, *_: object) -> None:
            events.append("exit")

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", Current)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: "the default stream")

    with engine_stream(torch.device("cuda")):
        events.append("works")

    assert events == [("cuda", -1), ("waits for", "the default stream"), "enter", "works", "exit"]
