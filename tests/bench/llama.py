"""llama.cpp beside the engine: where it is, and how it is asked."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from tests.bench.subjects import Prompt, Run

PYTHON, WEIGHTS = "FOOTNOTE_BENCH_LLAMA_PYTHON", "FOOTNOTE_BENCH_LLAMA_GGUF"


class LlamaCpp:
    """llama.cpp's server, one prompt at a time, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.version: str = json.loads(self._read())["version"]

    def run(self, prompt: Prompt, new: int) -> Run:
        """One prompt, greedily, from an empty cache."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"prompt": prompt, "new": new}) + "\n")
        self._process.stdin.flush()
        done = json.loads(self._read())
        return Run(done["seconds"], (done["first"],), (), (tuple(done["tokens"]),), new - 1)

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process with llama.cpp has ended"
        return line


def missing() -> str | None:
    """Why there is no llama.cpp to compare with, None if there is."""
    python, weights = os.environ.get(PYTHON), os.environ.get(WEIGHTS)
    if not python or not weights:
        return f"{PYTHON} names no Python with xllamacpp, or {WEIGHTS} no GGUF file of the default model"
    if not Path(weights).is_file():
        return f"{WEIGHTS} names no file"
    tried = subprocess.run([python, "-c", "import xllamacpp"], capture_output=True, check=False)
    return None if tried.returncode == 0 else f"xllamacpp cannot be imported by what {PYTHON} names"


@contextmanager
def llama_cpp() -> Iterator[LlamaCpp]:
    """llama.cpp over the weights as they come, with as many threads as torch has here."""
    script = Path(__file__).with_name("llama_process.py")
    command = [os.environ[PYTHON], "-P", str(script), os.environ[WEIGHTS], str(torch.get_num_threads())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield LlamaCpp(process)
        finally:
            process.kill()
