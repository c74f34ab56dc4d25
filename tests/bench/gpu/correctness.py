"""Kernels against float64, draws against the reference, and an engine's greedy tokens against `generate`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from generation.batched_draws import BatchedDraws
from generation.draws import SamplingRow, draw_rows
from generation.graphs import Capture
from generation.types import SamplingParams
from tests.bench.gpu.checklist import Checklist
from tests.bench.gpu.random_model import RandomFootnote, RandomGenerate, random_model, word_tokenizer
from tests.bench.workloads import random_prompts
from tests.generation.paged import Shape, attend_in_steps, expected

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
EACH = 20  # tokens of each of the prompts that are compared with `generate`
LENGTHS = (5, 33, 300, 511)
LONG = 2500 if torch.cuda.is_available() else 600
# Name, shape, chunks of each sequence, tolerance: as in tests/generation/paged_kernel_cases.py, of real heads.
KERNELS: tuple[tuple[str, Shape, list[list[int]], float], ...] = (
    (
        "float32, 8 key heads of 128 for 32, at the edges of splits",
        Shape(dtype=F32, kv_heads=8, group=4, head_dim=128),
        [[255, 1, 1], [511, 1, 1], [256, 1], [40]],
        2e-5,
    ),
    (
        "float32, 7 heads share a key, a window over several splits",
        Shape(dtype=F32, kv_heads=1, group=7, head_dim=64, window=300),
        [[700, 1], [513, 16], [299, 17]],
        2e-5,
    ),
    (
        "float32, heads of 256, scores capped, a window",
        Shape(dtype=F32, kv_heads=2, group=2, head_dim=256, softcap=30.0, window=9),
        [[40, 1], [2, 17]],
        2e-5,
    ),
    ("bfloat16, long", Shape(dtype=BF16, kv_heads=8, group=4, head_dim=128), [[LONG, 1, 4], [129, 1], [700, 1]], 3e-2),
    ("bfloat16, heads of 96", Shape(dtype=BF16, kv_heads=4, group=1, head_dim=96), [[600, 1, 1], [33]], 3e-2),
    ("float16, 71 heads share a key", Shape(dtype=F16, kv_heads=1, group=71, head_dim=64), [[20, 1], [5, 30]], 4e-3),
)


def kernels(checks: Checklist, device: torch.device) -> None:
    """The kernels of pages beside attention over contiguous keys in float64, NaN in every slot not written."""
    which = ["triton" if device.type == "cuda" else "reference"]
    for name, shape, plan, tolerance in KERNELS:
        outputs = attend_in_steps(replace(shape, device=str(device)), plan, kernels=which)  # type: ignore[arg-type]
        pairs = list(zip(outputs, expected(shape, plan), strict=True))
        worst = max(float((got.double() - wanted).abs().max()) for got, wanted in pairs)
        close = all(torch.allclose(got.double(), wanted, atol=tolerance, rtol=tolerance) for got, wanted in pairs)
        checks.check(f"kernels: {name}", close, f"off by {worst:.1e} at most")
    if device.type == "cuda":  # the reference multiplies by other routines for other numbers of rows
        shape = Shape(dtype=BF16, kv_heads=8, group=4, head_dim=128, device=str(device))
        [alone] = attend_in_steps(shape, [[700, 1]], kernels=["reference", "triton"])
        among, *_ = attend_in_steps(shape, [[700, 1], [600, 2], [5, 17]], kernels=["reference", "triton"], block_seed=8)
        checks.check("kernels: neighbours change no bit of a sequence", torch.equal(alone[:, -1], among[:, -1]))


def draws(checks: Checklist, device: torch.device, *, vocabulary: int) -> None:
    """Rows drawn together beside the same rows drawn one by one, with masks, penalties, top-p, top-k and min-p.

    Logits are as steep as an answer's, so that few tokens are kept and hardly a row is left to the reference.
    """
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"temperature": 1.0},
        {"temperature": 0.7, "top_p": 0.9},
        {"temperature": 0.9, "top_k": 40, "min_p": 0.01},
        {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2, "presence_penalty": 0.5},
    )
    logits = 8 * torch.randn((60, vocabulary), generator=torch.Generator().manual_seed(3)).to(device)
    mask = torch.arange(vocabulary) % 3 > 0
    rows = [
        SamplingRow(
            SamplingParams(max_tokens=1, **kinds[n % 5]), n, 7, tuple(range(50)), (4, 5), mask if n % 2 else None
        )
        for n in range(60)
    ]
    together, alone = BatchedDraws()(logits, rows), draw_rows(logits, rows)
    equal = sum(mine.token == other.token for mine, other in zip(together, alone, strict=True))
    checks.check("sampling: rows drawn together are those drawn alone", equal == 60, f"{equal}/60 equal")


def equality(checks: Checklist, device: torch.device, *, make_capture: Callable[[], Capture]) -> None:
    """Greedy tokens of a small float32 model with normalised queries and keys, beside `generate`, prompt by prompt."""
    from transformers import Qwen3Config

    configuration = Qwen3Config(
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=64,
        vocab_size=1024,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = random_model(configuration, device=device, dtype=F32, scale=3.0)
    prompts = [
        tuple(token % 1024 for token in prompt)
        for length in LENGTHS
        for prompt in random_prompts(1, length, seed=length)
    ]
    wanted = RandomGenerate(model).one_by_one(prompts, EACH).tokens
    capture = make_capture()
    subject = RandomFootnote(
        model,
        word_tokenizer(1024),
        capture=capture,
        context_window=1024,
        kv_cache_bytes=1 << 25,
        max_running=len(prompts),
        step_tokens=200,  # so that longer prompts are read in chunks, beside those that decode
    )
    found = subject.run(prompts, EACH).tokens
    again = subject.run(prompts, EACH)
    pairs = [pair for mine, theirs in zip(found, wanted, strict=True) for pair in zip(mine, theirs, strict=True)]
    equal = sum(mine == theirs for mine, theirs in pairs)
    checks.check("greedy tokens are those of generate", equal == len(pairs) == 80, f"{equal} of {len(pairs)}")
    checks.check(
        "… also behind a prefix found in the cache", again.tokens == found and again.cached > 0, f"{again.cached} found"
    )
    serving_path(checks, subject, "small model", device=device)
    subject.close()


def serving_path(checks: Checklist, subject: RandomFootnote, name: str, *, device: torch.device) -> None:
    """Check that the fastest path served, that the graphs held, and that all room was given back."""
    path = subject.engine.stats().path
    assert path is not None
    checks.check(f"{name}: the cache is pages", path.layout == "pages", "; ".join(path.slower))
    if device.type == "cuda":
        checks.check(f"{name}: Triton's kernels serve", path.kernels == "triton")
    replays = 0 if subject.capture is None else subject.capture.replays
    trusted = path.graphs and replays >= EACH
    checks.check(f"{name}: the capture is trusted", trusted, "; ".join((*path.slower, f"{replays} steps replayed")))
    checks.check(f"{name}: every block is back", subject.every_block_is_back())
