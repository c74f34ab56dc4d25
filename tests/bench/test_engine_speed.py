"""The engine beside `transformers.generate`, interleaved in one run on the same token ids."""

import asyncio
import json
import statistics
import time
from typing import Any

import pytest
import torch

from app.models.folder import resolve
from app.settings import DEFAULT_GENERATOR, load_settings
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.tokenizer import ChatTokenizer
from generation.types import Completion, GenerationRequest, SamplingParams
from generation.weights import load_model
from tests.server import require_default_models

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

PROMPT, NEW, REPEATS = 1024, 48, 3


class Unobserved:
    """An observer that keeps no books."""

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:
        """Nothing to keep."""

    def finish(self, completion: Completion) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("streams", [1, 4])
def test_whole_requests_against_generate(streams):
    require_default_models()
    folder = resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir)
    tokenizer = ChatTokenizer.load(folder)
    config = EngineConfig(model=folder, dtype="float32", context_window=2048)
    engine = LocalEngine.load(config, tokenizer)
    reference: Any = load_model(EngineConfig(model=folder, dtype="float32")).model
    reference.set_attn_implementation("sdpa")
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(1000, 40_000, (streams, PROMPT), generator=generator)

    async def read(number: int) -> tuple[int, ...]:
        request = GenerationRequest(
            f"r{number}-{time.monotonic_ns()}",
            tuple(prompts[number].tolist()),
            SamplingParams(max_tokens=NEW, ignore_eos=True),
        )
        async for event in engine.submit(request, observer=Unobserved()):
            if isinstance(event, Completion):
                return event.token_ids
        raise AssertionError("a stream ends with its completion")

    async def ours() -> list[tuple[int, ...]]:
        return await asyncio.gather(*(read(number) for number in range(streams)))

    def theirs() -> list[tuple[int, ...]]:
        with torch.inference_mode():
            output = reference.generate(
                prompts,
                attention_mask=torch.ones_like(prompts),
                max_new_tokens=NEW,
                min_new_tokens=NEW,
                do_sample=False,
            )
        return [tuple(row[PROMPT:].tolist()) for row in output]

    seconds: dict[str, list[float]] = {"engine": [], "generate": []}
    for _ in range(REPEATS):
        started = time.perf_counter()
        mine = asyncio.run(ours())
        seconds["engine"].append(time.perf_counter() - started)
        started = time.perf_counter()
        expected = theirs()
        seconds["generate"].append(time.perf_counter() - started)
        assert mine == expected, "no speed without the same tokens"
    engine.close()

    rate = {name: streams * NEW / statistics.median(times) for name, times in seconds.items()}
    print(
        "\n"
        + json.dumps(
            {
                "streams": streams,
                "prompt_tokens": PROMPT,
                "new_tokens": NEW,
                "threads": torch.get_num_threads(),
                "tokens_per_second": {name: round(value, 2) for name, value in rate.items()},
                "ratio": round(rate["engine"] / rate["generate"], 2),
            }
        )
    )
