"""docker/locks/ names every package of the images by version and hash; a release image has a base with a digest."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_licences import installed

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "docker" / "locks"
LINE = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+) --hash=sha256:[0-9a-f]{64}")
IMAGE_EXTRAS = ("postgres", "oidc", "mcp", "otel", "s3")
TARGET = {
    "python_version": "3.11",
    "python_full_version": "3.11.9",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
}
WITHOUT_HASH = "torch"
"""Of the images for a processor: the wheel without CUDA is on PyTorch's own index, the lock's index has another."""
OF_CUDA = re.compile(r"(nvidia|cuda)-.+|triton")
"""What the torch of PyPI, which is built for CUDA, requires besides. The images for a processor have none of it."""


def pins(*names: str) -> dict[str, str]:
    """The versions of locks; every line has a version and a SHA-256 and nothing else."""
    found: dict[str, str] = {}
    for name in names:
        for line in (LOCKS / name).read_text().splitlines():
            match = LINE.fullmatch(line)
            assert match is not None, f"{name}: {line}"
            assert canonicalize_name(match[1]) not in found, f"{match[1]} is there twice"
            found[canonicalize_name(match[1])] = match[2]
    return found


IMAGES = {
    "cpu": (("cpu.x86_64.lock",), ("cpu", *IMAGE_EXTRAS)),
    "cpu ocr": (("cpu.x86_64.lock", "ocr.x86_64.lock"), ("cpu", "ocr", *IMAGE_EXTRAS)),
    "gpu": (("gpu.x86_64.lock",), ("gpu", *IMAGE_EXTRAS)),
}


@pytest.mark.parametrize("image", IMAGES)
def test_the_constraints_hold_an_installation_to_the_versions_of_the_images(image: str) -> None:
    constraints = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line]
    constrained: dict[str, Requirement] = {
        canonicalize_name(one.name): one for one in constraints if one.marker is None or one.marker.evaluate(TARGET)
    }

    for name, version in pins(*IMAGES[image][0]).items():
        assert name in constrained, f"{name} is in no constraint"
        assert constrained[name].specifier.contains(version), f"{name} {version} is not {constrained[name]}"


@pytest.mark.parametrize("image", IMAGES)
def test_a_lock_has_what_the_project_asks_for_within_its_ranges(image: str) -> None:
    locks, extras = IMAGES[image]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + [one for extra in extras for one in project["optional-dependencies"][extra]]
    locked = pins(*locks)

    for requirement in map(Requirement, asked):
        name = canonicalize_name(requirement.name)
        if name == WITHOUT_HASH and image != "gpu":
            assert name not in locked
            continue
        assert requirement.specifier.contains(locked[name]), f"{requirement} is locked as {locked.get(name)}"


@pytest.mark.parametrize("image", IMAGES)
def test_a_lock_agrees_with_the_constraints(image: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = [Requirement(line) for line in lines if line and not line.startswith("#")]
    locked = pins(*IMAGES[image][0])

    held = {canonicalize_name(one.name) for one in constraints}
    assert set(locked) - held <= {
        "nvidia-cublas-cu12",
        "nvidia-cuda-runtime-cu12",
        "nvidia-curand-cu12",
        "nvidia-cuda-nvrtc-cu12",
        "faiss-gpu",
    }
    for one in constraints:
        name = canonicalize_name(one.name)
        if name in locked and (one.marker is None or one.marker.evaluate(TARGET)):
            assert one.specifier.contains(locked[name]), f"{one} is locked as {locked[name]}"


def test_the_lock_of_a_processor_has_everything_that_what_is_installed_needs() -> None:
    names = {canonicalize_name(found.metadata["Name"]) for found in installed("footnote-rag", ("cpu", *IMAGE_EXTRAS))}
    missing = names - set(pins("cpu.x86_64.lock")) - {"footnote-rag", WITHOUT_HASH, "setuptools"}

    assert {name for name in missing if not OF_CUDA.fullmatch(name)} == set()


def test_the_build_of_footnote_itself_is_locked() -> None:
    [needed] = map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])

    assert needed.specifier.contains(pins("build.lock")[needed.name])


def check_base(image: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "docker" / "check_base.py")
    return subprocess.run([sys.executable, script, image], capture_output=True, text=True, check=False)


def test_a_release_image_needs_a_base_with_tag_and_digest() -> None:
    accepted = check_base(f"python:3.11-slim-bookworm@sha256:{'0a' * 32}")
    refused = [
        check_base(image)
        for image in ("python:3.11-slim-bookworm", f"python@sha256:{'0a' * 32}", "", "python:3@sha256:0a")
    ]

    assert (accepted.returncode, accepted.stderr) == (0, "")
    assert all(one.returncode == 1 and "digest" in one.stderr for one in refused)


def test_no_release_image_is_built_before_its_base_was_checked() -> None:
    recipe = (ROOT / "Makefile").read_text().split("\nrelease-images:")[1].split("\n\n")[0].strip().splitlines()

    assert "docker/check_base.py" in recipe[0]
    assert len(recipe) == 3
    assert all("docker build" in line and 'PYTHON_IMAGE="$(PYTHON_IMAGE)"' in line for line in recipe[1:])


def test_a_lock_leaves_out_what_another_has_and_what_is_named() -> None:
    locked = runpy.run_path(str(ROOT / "docker" / "lock.py"))["locked"]
    files = [(name, {"archive_info": {"hashes": {"sha256": "ab"}}}) for name in ("anyio", "torch", "zope")]
    report = {
        "version": "1",
        "install": [{"metadata": {"name": n, "version": "1"}, "download_info": d} for n, d in files],
    }

    assert locked(report, without=["torch"], beyond="zope==1 --hash=sha256:ab\n") == "anyio==1 --hash=sha256:ab\n"
