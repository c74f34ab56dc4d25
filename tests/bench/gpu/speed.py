"""Milliseconds, tokens a second and the share of the limit: decoding, reading, a cached prefix."""

from collections.abc import Callable
from typing import Any

import torch

from generation.graphs import Capture
from generation.tokenizer import ChatTokenizer
from generation.types import CitationMarkers
from tests.bench.gpu.checklist import Checklist, Speed
from tests.bench.gpu.correctness import serving_path
from tests.bench.gpu.random_model import RandomFootnote
from tests.bench.gpu.sizes import Sizes
from tests.bench.machine import median
from tests.bench.subjects import Prompt
from tests.bench.workloads import random_prompts

SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "greedy with citations": {"constraint": CitationMarkers(4)},
    "temperature 0.7, top-p 0.9": {"temperature": 0.7, "top_p": 0.9, "seed": 1},
    "temperature 4, top-p 0.9": {"temperature": 4.0, "top_p": 0.9, "seed": 1},  # some thousand tokens are kept
}
GOALS = {1: 0.70, 8: 0.65, 64: 0.60}  # of the memory limit, greedy with citations


def prompts_of(sizes: Sizes, count: int, *, seed: int) -> list[Prompt]:
    """Prompts that begin unlike each other, of ids that the model has."""
    words = sizes.shape["vocab_size"]
    return [tuple(token % words for token in prompt) for prompt in random_prompts(count, sizes.context, seed=seed)]


class Speeds:
    """One model's measurements; see the module."""

    def __init__(
        self, checks: Checklist, sizes: Sizes, model: Any, tokenizer: ChatTokenizer, *, bandwidth: float, flops: float
    ) -> None:
        self._checks, self._sizes = checks, sizes
        self._model, self._tokenizer = model, tokenizer
        self._bandwidth, self._flops = bandwidth, flops
        # An embedding is looked up, all else is read in every step.
        named = [(name, parameter) for name, parameter in model.named_parameters() if "embed_tokens" not in name]
        self._read_bytes = sum(parameter.numel() * parameter.element_size() for _, parameter in named)
        self._parameters = sum(parameter.numel() for name, parameter in named if "lm_head" not in name)

    def engine(self, capture: Capture | None) -> RandomFootnote:
        """An engine with room for every batch."""
        sizes = self._sizes
        return RandomFootnote(
            self._model,
            self._tokenizer,
            capture=capture,
            context_window=sizes.window,
            kv_cache_bytes=sizes.cache_tokens * sizes.token_bytes,
            max_running=max(sizes.batches),
            max_waiting=2 * max(sizes.batches),
            max_waiting_tokens=1 << 30,
            step_tokens=2048,
        )

    def decoding(self, make_capture: Callable[[], Capture], device: torch.device) -> None:
        """Every batch by every sampling, with graphs; and greedy kernel by kernel."""
        for capture in (make_capture(), None):
            subject = self.engine(capture)
            for batch in self._sizes.batches:
                prompts = prompts_of(self._sizes, batch, seed=700)
                subject.run(prompts, 4)  # read once, compiled, compared
                for name, sampling in SAMPLINGS.items() if capture is not None else [("greedy", {})]:
                    subject.run(prompts, 4, **sampling)  # masks are made and sent once
                    suffix = "" if capture is not None else ", kernel by kernel"
                    self._decoded(subject, prompts, f"{batch} x {name}{suffix}", sampling)
            if capture is not None:
                serving_path(self._checks, subject, "large model", device=device)
                self._reading(subject)
                self._reuse(subject)
            subject.close()

    def _decoded(self, subject: RandomFootnote, prompts: list[Prompt], what: str, sampling: dict[str, Any]) -> None:
        sizes, batch = self._sizes, len(prompts)
        runs = [subject.run(prompts, sizes.new, **sampling) for _ in range(3)]
        run = sorted(runs, key=lambda run: run.decode_rate)[1]
        if run.cached < batch * (
            sizes.context - 2 * subject.runner.block_tokens
        ):  # rows that still read while others answer are no batch
            self._checks.check(f"decode {what}: prompts come from the cache", False, f"{run.cached} tokens")
        needed = self._read_bytes + batch * (sizes.context + sizes.new / 2) * sizes.token_bytes
        rate = run.decode_rate
        row = Speed(f"decode {what}", batch / rate * 1e3, rate, needed / self._bandwidth * 1e3)
        self._checks.measured(row)
        on_gpu = self._model.device.type == "cuda"
        if on_gpu and "citations" in what and (goal := GOALS.get(batch)) is not None and row.share is not None:
            self._checks.say(f"goal {goal:.2f} of the limit: {'reached' if row.share >= goal else 'missed'}")

    def _reading(self, subject: RandomFootnote) -> None:
        """First tokens of prompts that nobody has sent before."""
        sizes = self._sizes
        seconds = median([subject.run([prompt], 1).first[0] for prompt in prompts_of(sizes, 3, seed=800)])
        layers, hidden = sizes.shape["num_hidden_layers"], sizes.shape["hidden_size"]
        attention = 2 * layers * hidden * sizes.context**2  # two products, half of the keys on average
        needed = 2 * self._parameters * sizes.context + attention
        limit = needed / self._flops * 1e3
        self._checks.measured(Speed(f"read {sizes.context} tokens", seconds * 1e3, sizes.context / seconds, limit))

    def _reuse(self, subject: RandomFootnote) -> None:
        """First tokens of other questions behind a prompt that was read before."""
        sizes = self._sizes
        [sources], questions = prompts_of(sizes, 1, seed=801), prompts_of(sizes, 3, seed=802)
        subject.run([sources], 1)
        runs = [subject.run([(*sources, *question[:30])], 1) for question in questions]
        tokens, seconds = sizes.context + 30, median([run.first[0] for run in runs])
        found = min(run.cached for run in runs)
        self._checks.measured(Speed(f"read 30 tokens behind {sizes.context} cached", seconds * 1e3, tokens / seconds))
        self._checks.check("a cached prefix is found", found > 0.7 * sizes.context, f"{found} of {sizes.context}")
