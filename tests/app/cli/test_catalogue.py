"""app.cli.catalogue lists every command as its module has it, and imports only what is called."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from app.cli.catalogue import COMMANDS, load

HEAVY = ("httpx", "pydantic", "numpy", "sqlalchemy", "fastapi", "torch")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    assert " ".join(load(name).help.split("\n\n")[0].split()) == COMMANDS[name].help


def test_every_command_of_a_listed_module_is_listed() -> None:
    import typer

    for module in {entry.module for entry in COMMANDS.values()}:
        found = import_module(f"app.cli.{module}")
        if hasattr(found, "register"):
            alone = typer.Typer(callback=lambda: None)
            found.register(alone)
            assert set(typer.main.get_group(alone).commands) <= set(COMMANDS)


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from app.cli import main\n"
        "try: main()\n"
        f"except SystemExit: print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )

    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)

    assert ended.stderr.strip() == "[]"
    assert "Usage" in ended.stdout


def test_a_command_that_needs_no_model_does_not_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from app.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    environment = {**os.environ, "FOOTNOTE_DATA_DIR": str(tmp_path / "data")}

    ended = subprocess.run(
        [sys.executable, "-c", code, "keys", "list"], capture_output=True, text=True, check=True, env=environment
    )

    assert ended.stdout.splitlines()[-1] == "[]"
