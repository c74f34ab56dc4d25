"""The engine and its peers, on the same token ids: each is given prompts and says when tokens came."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any

import torch

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.tokenizer import ChatTokenizer
from generation.types import Completion, Constraint, Delta, GenerationRequest, SamplingParams

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """One workload carried out: seconds in all, to each first token, between tokens; the tokens; the completions."""

    seconds: float
    first: tuple[float, ...]
    between: tuple[float, ...]
    tokens: tuple[tuple[int, ...], ...]
    late: int
    cached: int = 0
    accepted: int = 0

    @property
    def decode_rate(self) -> float:
        """Tokens a second once every sequence has its first: what came before counts for nothing."""
        return self.late / (self.seconds - max(self.first))

    @property
    def rate(self) -> float:
        """Tokens a second over whole requests."""
        return sum(map(len, self.tokens)) / self.seconds


class Unobserved:
    """An observer that keeps no books."""

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:
        """Nothing to keep."""

    def finish(self, completion: Completion) -> None:
        """Nothing to close."""


class Footnote:
    """Our engine."""

    def __init__(self, folder: str, tokenizer: ChatTokenizer, **settings: Any) -> None:
        usual: dict[str, Any] = {"dtype": "float32", "context_window": 8192}
        config = EngineConfig(model=folder, **(usual | settings))
        self._serve = self.loader(config, tokenizer)
        self.engine = self._serve()

    def loader(self, config: EngineConfig, tokenizer: ChatTokenizer) -> Callable[[], LocalEngine]:
        """Load the model once; each call of the result serves it afresh."""
        return LocalEngine.loader(config, tokenizer)

    def fresh(self) -> None:
        """Start again with an empty cache."""
        self.engine.close()
        self.engine = self._serve()

    def run(
        self,
        prompts: Sequence[Prompt],
        new: int,
        *,
        sources: Sequence[tuple[tuple[int, int], ...]] | None = None,
        speculate: bool = False,
        constraint: Constraint | None = None,
        **sampling: Any,
    ) -> Run:
        """All prompts at once."""
        params = SamplingParams(max_tokens=new, ignore_eos=True, **sampling)

        came: list[tuple[float, int]] = []

        async def read(number: int) -> tuple[Completion, float, list[float]]:
            request = GenerationRequest(
                f"bench-{number}",
                prompts[number],
                params,
                sources=sources[number] if sources else (),
                speculate=speculate,
                constraint=constraint,
            )
            started = last = time.perf_counter()
            first = 0.0
            between: list[float] = []
            async for event in self.engine.submit(request, observer=Unobserved()):
                now = time.perf_counter()
                if isinstance(event, Completion):
                    assert event.error is None, event.error
                    return event, first, between
                assert isinstance(event, Delta)
                came.append((now, event.tokens))
                if first == 0.0:
                    first = now - started
                else:
                    between.append(now - last)
                last = now
            raise AssertionError("a stream ends with its completion")

        async def together() -> list[tuple[Completion, float, list[float]]]:
            return await asyncio.gather(*(read(number) for number in range(len(prompts))))

        started = time.perf_counter()
        done = asyncio.run(together())
        seconds = time.perf_counter() - started
        first = tuple((completion.timings.first_token_ms or 0) / 1000 for completion, _, _ in done)
        return Run(
            seconds,
            first,
            tuple(gap for _, _, gaps in done for gap in gaps),
            tuple(completion.token_ids for completion, _, _ in done),
            sum(count for at, count in came if at - started > max(first)),
            sum(completion.cached_tokens for completion, _, _ in done),
            sum(completion.accepted_tokens for completion, _, _ in done),
        )


class Generate:
    """`transformers.generate`, dynamic cache, SDPA: one prompt, or equal ones as one batch."""

    def __init__(self, folder: str) -> None:
        from transformers import AutoModelForCausalLM

        self.model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, attn_implementation="sdpa"
        ).eval()

    def run(self, prompts: Sequence[Prompt], new: int, **sampling: Any) -> Run:
        """One batch; prompts are of one length, so nothing is padded: its best case."""
        ids = torch.tensor(prompts, device=self.model.device)
        clock = _Clock()
        started = time.perf_counter()
        with torch.inference_mode():
            output = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new,
                min_new_tokens=new,
                do_sample=False,
                streamer=clock,
                **sampling,
            )
        seconds = time.perf_counter() - started
        times = [at - started for at in clock.times]
        tokens = tuple(tuple(row[ids.shape[1] :].tolist()) for row in output)
        between = tuple(after - before for before, after in pairwise(times))
        return Run(seconds, (times[0],) * len(prompts), between, tokens, (len(times) - 1) * len(prompts))

    def one_by_one(self, prompts: Sequence[Prompt], new: int) -> Run:
        """Each prompt alone, after the one before."""
        started = time.perf_counter()
        runs = [self.run([prompt], new) for prompt in prompts]
        return Run(
            time.perf_counter() - started,
            tuple(run.first[0] for run in runs),
            (),
            tuple(run.tokens[0] for run in runs),
            0,
        )

    def read(self, prompt: Prompt) -> float:
        """Seconds of one forward pass over a prompt, logits of the last token only."""
        ids = torch.tensor([prompt], device=self.model.device)
        started = time.perf_counter()
        with torch.inference_mode():
            self.model(input_ids=ids, use_cache=True, logits_to_keep=1)
        return time.perf_counter() - started

    def continuous(self, prompts: Sequence[Prompt], new: int) -> Run:
        """transformers' own continuous batching; on a CPU with the settings that did best there."""
        from transformers import ContinuousBatchingConfig, GenerationConfig

        pages: dict[str, Any] = {}
        # Before transformers 5.20 it has another name.
        pages["page_size" if "page_size" in signature(ContinuousBatchingConfig).parameters else "block_size"] = 32
        started = time.perf_counter()
        outputs = self.model.generate_batch(
            [list(prompt) for prompt in prompts],
            generation_config=GenerationConfig(
                max_new_tokens=new, min_new_tokens=new, do_sample=False, eos_token_id=-1, pad_token_id=0
            ),
            continuous_batching_config=ContinuousBatchingConfig(
                **pages,
                max_batch_tokens=512 if self.model.device.type == "cpu" else 2048,
                num_blocks=len(prompts) * (len(prompts[0]) + new + 64) // 32,
            ),
            warmup=False,
        )
        seconds = time.perf_counter() - started
        done = sorted(outputs.values(), key=lambda output: int(str(output.request_id).rpartition("_")[2]))
        return Run(seconds, (seconds,), (), tuple(tuple(output.generated_tokens) for output in done), 0)


class _Clock:
    """A streamer that only writes down when tokens came; the first call is the prompt's."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        """Tokens came."""
        if self._prompt_seen:
            self.times.append(time.perf_counter())
        self._prompt_seen = True

    def end(self) -> None:
        """No more will."""
