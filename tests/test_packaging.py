"""The wheel contains the whole application and nothing else (docs/adr/0002)."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "ingestion", "retrieval", "generation", "migrations")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built by pip from a copy of the tree, without the network."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    ignore = shutil.ignore_patterns("__pycache__", "node_modules", "*.egg-info")
    for folder in (*PACKAGES, "tests", "docs", "docker"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run([*command, "-w", str(out), str(tree)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def text_of(wheel: zipfile.ZipFile, ending: str) -> str:
    (name,) = [name for name in wheel.namelist() if name.endswith(ending)]
    return wheel.read(name).decode()


def test_the_top_level_is_the_five_packages_and_the_metadata(wheel: zipfile.ZipFile) -> None:
    top = {name.split("/")[0] for name in wheel.namelist()}

    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)
    assert len(top) == len(PACKAGES) + 1


def test_every_module_but_training_is_inside(wheel: zipfile.ZipFile) -> None:
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "node_modules" not in path.parts and not path.is_relative_to(ROOT / "app/tuning")
    }

    assert sources <= set(wheel.namelist())
    assert not [name for name in wheel.namelist() if name.startswith("app/tuning/")]
    assert all((ROOT / name).exists() for name in wheel.namelist() if name.endswith(".py"))


def test_every_package_says_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel.namelist())


def test_every_language_is_inside(wheel: zipfile.ZipFile) -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "app/answering/languages").glob("*.toml")}

    assert files
    assert files <= set(wheel.namelist())


def test_an_installed_wheel_can_migrate(wheel: zipfile.ZipFile) -> None:
    inside = set(wheel.namelist())

    assert {"migrations/env.py", "migrations/script.py.mako"} <= inside
    assert {f"migrations/first_release/{dialect}.sql" for dialect in ("sqlite", "postgresql")} <= inside
    assert any(name.startswith("migrations/versions/0020") for name in inside)


def test_the_metadata_names_the_licence_the_command_and_keeps_off_public_indexes(wheel: zipfile.ZipFile) -> None:
    metadata = text_of(wheel, ".dist-info/METADATA")

    assert "\nName: footnote-rag\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert "\nClassifier: Private :: Do Not Upload\n" in metadata
    assert "footnote = app.cli:main" in text_of(wheel, ".dist-info/entry_points.txt")
    assert text_of(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def test_the_licence_is_the_whole_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_text()

    assert text.lstrip().startswith("Apache License")
    assert "END OF TERMS AND CONDITIONS" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text
