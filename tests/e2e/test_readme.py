"""README's commands, word for word, in a shell beside a running server.

Only the address is another, and the key that the first start prints is the suite's. The commands that clone and install
are what every test run has behind it.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.settings import load_settings
from tests.processes import footnote as command_line
from tests.processes import running
from tests.server import ADMIN_KEY, Server

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"\s{2,}#.*")
LEASE = "The lease of the warehouse ends on 30 June 2031.\n\nThe termination clause asks for notice of six months."
_INSTALLS = ("git clone ", "make run")
_NEEDS_A_GPU = ("make gpu-check", ".venv/bin/footnote models add Qwen/")  # `--tiny` of the first runs in its own test

SAYS = {
    "export KEY=": "",
    "curl -s http://127.0.0.1:8000/v1/documents": '"status":"indexed"',
    "curl -s http://127.0.0.1:8000/v1/ask": "8 euros",
    ".venv/bin/footnote ingest": "indexed lease.txt: 1 chunk",
    ".venv/bin/footnote ask": "30 June 2031",
    ".venv/bin/footnote search": "The termination clause asks for notice of six months.",
    ".venv/bin/footnote keys create": "member\nfn_",
    ".venv/bin/footnote usage report": "2 answers; ",
    ".venv/bin/footnote backup": "ledger rows.",
    ".venv/bin/footnote eval": "report.html",
    ".venv/bin/footnote mcp": "",
}
"""What each command's output holds, by how the command begins."""


def commands() -> list[str]:
    """README's commands in order, without their comments; those of several lines are one."""
    blocks = _BLOCK.findall((ROOT / "README.md").read_text())
    lines = "\n".join(blocks).replace("\\\n", "").splitlines()
    found = [_COMMENT.sub("", line) for line in lines if line.strip()]
    return [one for one in found if not one.startswith((*_INSTALLS, *_NEEDS_A_GPU))]


@dataclass
class Shell:
    """A shell in a folder that looks like a clone after `make run`, for somebody who has a folder of contracts."""

    server: Server
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the folders and files that the commands name."""
        contracts, questions = self.home / "Documents" / "contracts", self.folder / "my-questions"
        for made in (self.folder / ".venv" / "bin", contracts, questions):
            made.mkdir(parents=True)
        program = self.folder / ".venv" / "bin" / "footnote"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command_line())} "$@"\n')
        program.chmod(0o755)
        (self.folder / "app").symlink_to(ROOT / "app")
        (contracts / "lease.txt").write_text(LEASE)
        (questions / "lease.txt").write_text(LEASE)
        (questions / "questions.csv").write_text(
            "question,expected,document\nWhen does the lease of the warehouse end?,30 June 2031,lease.txt\n"
        )

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.folder.parent / "home"

    def run(self, command: str) -> str:
        """The output of a command, once it has ended by itself; one that follows a folder is stopped by Ctrl-C."""
        if command.startswith("export "):
            self.variables["KEY"] = ADMIN_KEY
            return ""
        with running(
            ["bash", "-c", command],  # of one command, which takes the shell's place and its signals
            cwd=self.folder,
            env={
                **os.environ,
                "HOME": str(self.home),
                "FOOTNOTE_DATA_DIR": str(self.server.data_dir),
                "FOOTNOTE_MODELS_DIR": str(load_settings().models_dir),
                "COLUMNS": "160",
                "NO_PROXY": "127.0.0.1",
                **self.variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            said = b""
            if "--watch" in command:
                said = self._until(b"indexed ", process)
                process.send_signal(signal.SIGINT)
            said += process.communicate(timeout=120)[0]
        assert process.returncode == 0, said.decode()
        return said.decode()

    @staticmethod
    def _until(words: bytes, process: "subprocess.Popen[bytes]") -> bytes:
        """What a process says up to the first line with some words; the test's own time limit ends the wait."""
        assert process.stdout is not None
        said = b""
        for line in process.stdout:
            said += line
            if words in line:
                break
        return said


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    server = Server(tmp_path / "data")
    try:
        shell = Shell(server.start(), tmp_path / "clone")
        shell.prepare()
        yield shell
    finally:
        server.close()


def test_every_command_of_the_readme_does_what_it_says(shell: Shell) -> None:
    found = commands()
    known = {begins: [one for one in found if one.startswith(begins)] for begins in SAYS}
    assert sum(map(len, known.values())) == len(found), "a command of the README is not checked here"
    assert all(known.values()), "a command that is checked here is not in the README"

    for command in found:
        says = next(words for begins, words in SAYS.items() if command.startswith(begins))
        typed = command.replace("http://127.0.0.1:8000", shell.server.url)
        assert says in shell.run(typed), command

    assert (shell.folder / "footnote.tar.gz").stat().st_size > 0
    assert (shell.folder / "report" / "report.html").stat().st_size > 0
