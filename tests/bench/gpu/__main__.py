"""`make gpu-check`: does the engine work on this machine's GPU, and how fast?

No weights are read and nothing is downloaded: models are made on the device by chance, one with the shape of 8 billion
parameters, of as many layers as there is memory for. Takes three to five minutes. Prints PASS or FAIL line by line, a
table, and `ALL PASSED`, or exits 1. `--tiny` does the same with tiny models on the processor in less than a minute,
where pages are served by the kernels' references and steps are recorded as CUDA graphs would be.
"""

import argparse
import gc
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from generation.accelerator import why_no_gpu
from generation.graphs import Capture, CudaCapture
from tests.bench.gpu.checklist import Checklist
from tests.bench.gpu.correctness import draws, equality, kernels
from tests.bench.gpu.limits import machine
from tests.bench.gpu.peers import vllm_requests, whole_requests
from tests.bench.gpu.random_model import random_model, word_tokenizer
from tests.bench.gpu.sizes import Sizes
from tests.bench.gpu.speed import Speeds
from tests.generation.recorder import Recorder

STEEP = 6.0  # logits of chance vary by 1.3 in a vocabulary of 128,256, those of an answer by about 8


def main(arguments: list[str] | None = None) -> int:
    """Check and measure; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="tiny models, on the processor")
    parser.add_argument("--out", type=Path, help="where the figures go, as JSON")
    asked = parser.parse_args(arguments)
    if not asked.tiny and (why := why_no_gpu()) is not None:
        print(f"torch sees no GPU. {why} `--tiny` tries the check itself on the processor.")
        return 1
    device = torch.device("cpu" if asked.tiny else "cuda")
    sizes = Sizes.tiny() if asked.tiny else Sizes.full(torch.cuda.mem_get_info()[0])
    checks = Checklist()
    run(checks, sizes, device, make_capture=Recorder if asked.tiny else CudaCapture)
    return checks.conclude(asked.out)


def run(checks: Checklist, sizes: Sizes, device: torch.device, *, make_capture: Callable[[], Capture]) -> None:
    """All parts, the results in `checks`. One that breaks does not end the others."""
    checks.part("kernels", partial(kernels, checks, device))
    checks.part("sampling", partial(draws, checks, device, vocabulary=sizes.shape["vocab_size"]))
    checks.part("greedy tokens", partial(equality, checks, device, make_capture=make_capture))

    def large() -> None:
        bandwidth, flops = machine(checks, sizes, device)
        model = random_model(sizes.configuration(), device=device, dtype=sizes.dtype, steep=STEEP)
        tokenizer = word_tokenizer(sizes.shape["vocab_size"])
        speeds = Speeds(checks, sizes, model, tokenizer, bandwidth=bandwidth, flops=flops)
        checks.part("decoding", partial(speeds.decoding, make_capture, device))
        checks.part("peers", partial(whole_requests, checks, sizes, speeds, model, make_capture=make_capture))

    checks.part("large model", large)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    checks.part("vLLM", partial(vllm_requests, checks, sizes))


if __name__ == "__main__":
    sys.exit(main())
