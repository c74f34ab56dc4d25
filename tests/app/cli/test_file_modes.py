"""Whatever a command creates in the data dir is accessible to its owner only, with any umask of the shell."""

import os
import stat
import subprocess
from pathlib import Path

from tests.processes import footnote

_DATABASE = {"footnote.db", "footnote.lock"}


def run(*arguments: str, data_dir: Path) -> None:
    """Run a command as from a shell with the usual umask."""
    environment = {**os.environ, "FOOTNOTE_DATA_DIR": str(data_dir), "FOOTNOTE_GENERATOR": "extractive"}
    subprocess.run(footnote(*arguments), env=environment, cwd=data_dir.parent, umask=0o022, check=True)


def open_to_others(data_dir: Path) -> list[str]:
    return [str(path) for path in (data_dir, *data_dir.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o077]


def names(data_dir: Path) -> set[str]:
    return {path.name for path in data_dir.rglob("*")}


def test_migrate_creates_a_private_data_dir(tmp_path: Path) -> None:
    run("migrate", data_dir=tmp_path / "data")

    assert names(tmp_path / "data") >= _DATABASE
    assert open_to_others(tmp_path / "data") == []
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_restore_creates_a_private_data_dir(tmp_path: Path) -> None:
    run("migrate", data_dir=tmp_path / "data")
    run("backup", str(tmp_path / "saved.tar.gz"), data_dir=tmp_path / "data")

    run("restore", str(tmp_path / "saved.tar.gz"), data_dir=tmp_path / "new")

    assert names(tmp_path / "new") >= _DATABASE | {"files"}
    assert open_to_others(tmp_path / "new") == []
    assert stat.S_IMODE((tmp_path / "saved.tar.gz").stat().st_mode) == 0o600


def test_the_modes_of_a_data_dir_that_is_there_are_kept(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data").chmod(0o755)

    run("migrate", data_dir=tmp_path / "data")

    assert open_to_others(tmp_path / "data") == [str(tmp_path / "data")]
