"""generation.triton_attention passes its cases, in Triton's interpreter and, where there is one, on a GPU.

Triton decides when it is imported whether it interprets or compiles, for a whole process: hence another one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

CASES = Path(__file__).with_name("paged_kernel_cases.py")


def run_cases(*, interpreted: bool) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", str(CASES)]
    return subprocess.run(
        command,
        env=inherited | ({"TRITON_INTERPRET": "1"} if interpreted else {}),
        cwd=CASES.parents[2],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_the_kernels_pass_their_cases_in_the_interpreter() -> None:
    result = run_cases(interpreted=True)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout and "skipped" not in result.stdout


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_kernels_pass_their_cases_on_the_gpu() -> None:
    result = run_cases(interpreted=False)

    assert result.returncode == 0, result.stdout + result.stderr
