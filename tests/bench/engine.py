"""`make bench-engine`: the engine beside its peers, interleaved in one run, as JSON.

Equality comes first: where a peer is greedy on the same weights, its tokens are compared, and a speed
without the same tokens is not reported. Every section prints as it ends and is kept if a later one fails.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil
import torch
from rich.console import Console

from app.models.folder import resolve
from app.settings import DEFAULT_GENERATOR, load_settings
from generation.planning import order_for_reuse
from generation.tokenizer import ChatTokenizer
from tests.bench.llama import llama_cpp, missing
from tests.bench.machine import description, limits, median
from tests.bench.subjects import Footnote, Generate, Run
from tests.bench.workloads import grounded, passages, popular, random_prompts

CONTEXT, NEW, ROUNDS = 1536, 48, 3
console = Console()


class Bench:
    """What the sections share."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.tokenizer = ChatTokenizer.load(folder)
        self.peer = Generate(folder)
        self.weight_bytes = 4 * sum(parameter.numel() for parameter in self.peer.model.parameters())
        self.machine = description() | limits(self.weight_bytes)

    def engine(self, **settings: Any) -> Footnote:
        """An engine over the default model."""
        return Footnote(self.folder, self.tokenizer, **settings)

    def bandwidth_share(self, tokens_per_s: float) -> float:
        """Share of the read bandwidth that decoding at this rate would need in float32, weights alone."""
        share: float = tokens_per_s * self.weight_bytes / 1e9 / self.machine["read_gb_s"]
        return round(share, 3)


def one_stream(bench: Bench) -> dict[str, Any]:
    """Decoding alone after 1.5k tokens: native weights, int8 weights, `generate`."""
    subjects = {
        "engine": bench.engine(speculation=False),
        "engine int8": bench.engine(speculation=False, weights="int8"),
    }
    rates: dict[str, list[float]] = {name: [] for name in (*subjects, "generate")}
    for number in range(ROUNDS):
        [prompt] = random_prompts(1, CONTEXT, seed=number)
        runs = {name: subject.run([prompt], NEW) for name, subject in subjects.items()}
        runs["generate"] = bench.peer.run([prompt], NEW)
        assert runs["engine"].tokens == runs["generate"].tokens, "no speed without the same tokens"
        for name, run in runs.items():
            rates[name].append(run.decode_rate)
    for subject in subjects.values():
        subject.engine.close()
    return _against(rates, "generate") | {
        "share_of_bandwidth": {name: bench.bandwidth_share(median(values)) for name, values in rates.items()}
    }


def eight_streams(bench: Bench) -> dict[str, Any]:
    """Eight requests of 1.5k tokens: decoding against a padded batch, whole requests against every peer."""
    subject = bench.engine(speculation=False)
    decode: dict[str, list[float]] = {"engine": [], "generate, one batch": []}
    first: dict[str, list[float]] = {"engine": [], "generate, one batch": []}
    whole: dict[str, list[float]] = {
        "engine": [],
        "generate, one batch": [],
        "generate, one by one": [],
    }
    for number in range(2):
        prompts = random_prompts(8, CONTEXT, seed=100 + number)
        ours, batch = subject.run(prompts, NEW), bench.peer.run(prompts, NEW)
        alone = bench.peer.one_by_one(prompts, NEW)
        assert ours.tokens == alone.tokens, "no speed without the same tokens"
        again = subject.run(prompts, NEW)  # the prompts are found, so that all eight decode from the start
        assert again.tokens == ours.tokens
        first["engine"].append(median(list(ours.first)))
        first["generate, one batch"].append(batch.first[0])
        decode["engine"].append(again.decode_rate)
        decode["generate, one batch"].append(batch.decode_rate)
        for name, run in zip(whole, (ours, batch, alone), strict=True):
            whole[name].append(run.rate)
    subject.engine.close()
    return {
        "decode": _against(decode, "generate, one batch"),
        "whole requests": _against(whole, "generate, one by one"),
        "first token, s, median of the streams": {name: round(median(times), 2) for name, times in first.items()},
    }


def continuous_batching(bench: Bench) -> dict[str, Any]:
    """Eight requests again, beside transformers' own continuous batching, which takes minutes on a CPU."""
    subject = bench.engine(speculation=False)
    prompts = random_prompts(8, CONTEXT, seed=150)
    ours, theirs = subject.run(prompts, 16), bench.peer.continuous(prompts, 16)
    subject.engine.close()
    return _against({"engine": [ours.rate], "transformers": [theirs.rate]}, "transformers") | {
        "sequences that ended differently": sum(
            mine != other for mine, other in zip(ours.tokens, theirs.tokens, strict=True)
        )
    }


def prefill(bench: Bench) -> dict[str, Any]:
    """Reading 2k tokens: the engine's first token against one forward pass of transformers."""
    subject = bench.engine(speculation=False, prefix_cache=False)
    rates: dict[str, list[float]] = {"engine": [], "transformers": []}
    for number in range(ROUNDS):
        [prompt] = random_prompts(1, 2048, seed=200 + number)
        rates["engine"].append(len(prompt) / subject.run([prompt], 1).first[0])
        rates["transformers"].append(len(prompt) / bench.peer.read(prompt))
    subject.engine.close()
    config = bench.peer.model.config
    parameters = sum(p.numel() for n, p in bench.peer.model.named_parameters() if "embed" not in n)
    attention = 2 * 2 * config.num_hidden_layers * config.hidden_size * 1024  # causal: half of the keys on average
    flop = 2 * parameters + attention
    return _against(rates, "transformers") | {
        "share_of_flops": {
            name: round(median(values) * flop / 1e12 / bench.machine["fp32_tflop_s"], 3)
            for name, values in rates.items()
        }
    }


def reuse(bench: Bench) -> dict[str, Any]:
    """W3: 400 chunks of 300 tokens, 6 a request, Zipf; first tokens without reuse, in rank order, planned."""
    chunks = random_prompts(400, 300, seed=300)
    head, question = random_prompts(1, 60, seed=301)[0], random_prompts(1, 30, seed=302)[0]
    requests = popular(400, 6, 36, seed=303)
    wanted = [0] * 400
    without = bench.engine(speculation=False, prefix_cache=False)
    ranked, planned = bench.engine(speculation=False), bench.engine(speculation=False)
    first: dict[str, list[float]] = {"no reuse": [], "rank order": [], "planned order": [], "asked again": []}
    cached: dict[str, int] = dict.fromkeys(first, 0)

    def ask(name: str, subject: Footnote, order: list[int]) -> None:
        prompt = (*head, *(token for chunk in order for token in chunks[chunk]), *question)
        run = subject.run([prompt], 1)
        first[name].append(run.first[0])
        cached[name] += run.cached

    for number, found in enumerate(requests):
        for chunk in found:
            wanted[chunk] += 1
        if number % 6 == 0:  # it does not change with time
            ask("no reuse", without, found)
        ask("rank order", ranked, found)
        order = order_for_reuse(
            6,
            head=head,
            render=lambda source, _, found=found: chunks[found[source]],  # type: ignore[misc]
            cached=lambda tokens: planned.engine.cached_tokens(tokens, salt=""),
            popularity=lambda source, found=found: wanted[found[source]],  # type: ignore[misc]
        )
        planned_order = [found[place] for place in order]
        ask("planned order", planned, planned_order)
        if number % 6 == 5:
            ask("asked again", planned, planned_order)
    for subject in (without, ranked, planned):
        subject.engine.close()
    warm = {name: median(times[len(times) // 2 :]) for name, times in first.items()}
    tokens = len(head) + 6 * 300 + len(question)
    return {
        "first_token_s, median of the second half": {name: round(seconds, 3) for name, seconds in warm.items()},
        "ratio to no reuse": {name: round(seconds / warm["no reuse"], 3) for name, seconds in warm.items()},
        "share of prompt tokens found": {
            name: round(cached[name] / (len(times) * tokens), 3) for name, times in first.items()
        },
    }


def speculation(bench: Bench) -> dict[str, Any]:
    """W4 and W4': copying from a source, and inventing; the same engine with and without drafts.

    Beside the clock's ratio stands one of steps: how long the drafted run's steps took, by their number of
    rows, against as many steps of one row in the same run as there were tokens. It holds still on a
    machine whose speed changes from minute to minute.
    """
    subject = bench.engine()
    texts = passages(bench.tokenizer, size=250)
    report: dict[str, Any] = {}
    for name, ask, sampling in (
        ("extractive", "Repeat source [2] word for word.", {}),
        ("abstractive", "Invent a story about a lighthouse keeper and a whale.", {"temperature": 1.0}),
    ):
        rates: dict[str, list[float]] = {"drafts": [], "no drafts": []}
        accepted, by_steps = 0, []
        for number in range(6):
            prompt = grounded(bench.tokenizer, texts[4 * number : 4 * number + 4], ask)
            settings: dict[str, Any] = sampling | ({"seed": number} if sampling else {})
            runs: dict[str, Run] = {}
            subject.run([prompt.ids], 1)  # both find the prompt
            for drafts in (number % 2 == 0, number % 2 == 1):
                key = "drafts" if drafts else "no drafts"
                with _watched(subject.engine) as steps:
                    runs[key] = subject.run([prompt.ids], 96, sources=[prompt.sources], speculate=drafts, **settings)
                rates[key].append(runs[key].decode_rate)
                if drafts:
                    by_steps.append(_step_ratio(steps, tokens=95))
            assert runs["drafts"].tokens == runs["no drafts"].tokens, "drafts changed the text"
            accepted += runs["drafts"].accepted
        report[name] = _against(rates, "no drafts") | {
            "ratio by steps": round(median(by_steps), 3),
            "accepted_per_request": accepted / 6,
        }
    subject.engine.close()
    return report


def stalls(bench: Bench) -> dict[str, Any]:
    """W5: four streams while a prompt of 7.5k tokens arrives; the time between their tokens."""
    subject = bench.engine(speculation=False, prefix_cache=False)
    prompts = random_prompts(4, 256, seed=400)
    quiet = subject.run(prompts, 64)
    [long] = random_prompts(1, 7500, seed=401)
    busy = subject.run([*prompts, long], 64)
    subject.engine.close()
    tokens = 4 * 63
    return {
        "between tokens, s": {
            "alone": _percentiles(quiet.between[:tokens]),
            "while the long prompt is read": _percentiles(busy.between[:tokens]),
        },
        "first token of the long prompt, s": round(busy.first[-1], 2),
    }


def overhead(bench: Bench) -> dict[str, Any]:
    """Where a step at eight streams goes: the model's forward pass, and everything else."""
    report: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {
        "greedy": {},
        "temperature 0.7, top_p 0.9": {"temperature": 0.7, "top_p": 0.9, "seed": 1},
    }
    for name, sampling in settings.items():
        subject = bench.engine(speculation=False)
        runner = subject.engine._loop._runner
        with _timed(runner._model) as model, _timed_run(runner) as step:  # type: ignore[attr-defined]
            run = subject.run(random_prompts(8, 256, seed=500), 64, **sampling)
        subject.engine.close()
        decode = run.seconds - max(run.first)
        in_model, in_step = (sum(spent for at, spent in spans if at > max(run.first)) for spans in (model, step))
        report[name] = {
            "model": round(in_model / decode, 3),
            "drawing and packing": round((in_step - in_model) / decode, 3),
            "scheduling and streaming": round(1 - in_step / decode, 3),
        }
    return report


def llama_cpp_peer(bench: Bench) -> dict[str, Any]:
    """One stream again, beside llama.cpp on the same token ids: reading 1.5k tokens and decoding after them.

    It has the GGUF file as it comes: 4-bit weights (Q4_1), of which ours are the rounded copy in wider types.
    Tokens may therefore part at a near tie; how many come before that is reported.
    """
    if (reason := missing()) is not None:
        console.print(f"llama.cpp: {reason}")
        return {"skipped": reason}
    subjects = {
        "engine": bench.engine(speculation=False, prefix_cache=False),
        "engine int8": bench.engine(speculation=False, prefix_cache=False, weights="int8"),
    }
    peer = "llama.cpp Q4_1"
    decode: dict[str, list[float]] = {name: [] for name in (*subjects, peer)}
    read: dict[str, list[float]] = {name: [] for name in (*subjects, peer)}
    equal = 0
    with llama_cpp() as llama:
        for number in range(ROUNDS):
            [prompt] = random_prompts(1, CONTEXT, seed=number)
            runs = {name: subject.run([prompt], NEW) for name, subject in subjects.items()}
            runs[peer] = llama.run(prompt, NEW)
            for name, run in runs.items():
                decode[name].append(run.decode_rate)
                read[name].append(len(prompt) / run.first[0])
            pairs = zip(runs[peer].tokens[0], runs["engine"].tokens[0], strict=True)
            equal += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        version = llama.version
    for subject in subjects.values():
        subject.engine.close()
    return {
        "xllamacpp": version,
        "decode": _against(decode, peer),
        "prefill": _against(read, peer),
        "share of tokens before the first that differs": round(equal / (ROUNDS * NEW), 3),
    }


SECTIONS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "one stream": one_stream,
    "eight streams": eight_streams,
    "llama.cpp": llama_cpp_peer,
    "prefill": prefill,
    "reuse": reuse,
    "speculation": speculation,
    "stalls": stalls,
    "overhead": overhead,
    "continuous batching": continuous_batching,
}


def _against(rates: dict[str, list[float]], peer: str) -> dict[str, Any]:
    return {
        "tokens_per_s": {name: round(median(values), 2) for name, values in rates.items()},
        f"ratio to {peer}": {
            name: round(median([mine / theirs for mine, theirs in zip(values, rates[peer], strict=True)]), 3)
            for name, values in rates.items()
            if name != peer
        },
    }


def _percentiles(gaps: tuple[float, ...]) -> dict[str, float]:
    ordered = sorted(gaps)
    return {f"p{share}": round(ordered[min(len(ordered) - 1, len(ordered) * share // 100)], 3) for share in (50, 99)}


def _step_ratio(steps: list[tuple[int, float]], *, tokens: int) -> float:
    """How much longer one row a step would have taken for `tokens` tokens than these (rows, seconds) did."""
    times: dict[int, list[float]] = {}
    for rows, seconds in steps:
        times.setdefault(rows, []).append(seconds)
    single = median(times.get(1) or [min(seconds for _, seconds in steps)])
    return tokens * single / sum(len(spent) * median(spent) for spent in times.values())


@contextmanager
def _watched(engine: Any) -> Iterator[list[tuple[int, float]]]:
    """(rows, seconds) of each step that only decodes."""
    steps: list[tuple[int, float]] = []
    speculator = engine._loop._speculation
    observe = speculator.observe

    def note(*, rows: int, seconds: float) -> None:
        steps.append((rows, seconds))
        observe(rows=rows, seconds=seconds)

    speculator.observe = note
    yield steps
    speculator.observe = observe


@contextmanager
def _timed(model: torch.nn.Module) -> Iterator[list[tuple[float, float]]]:
    """(seconds since entering, seconds spent) of each forward pass."""
    spans: list[tuple[float, float]] = []
    entered = time.perf_counter()
    begun = [0.0]

    def before(*_: object) -> None:
        begun[0] = time.perf_counter()

    def after(*_: object) -> None:
        spans.append((begun[0] - entered, time.perf_counter() - begun[0]))

    hooks = (model.register_forward_pre_hook(before), model.register_forward_hook(after))
    yield spans
    for hook in hooks:
        hook.remove()


@contextmanager
def _timed_run(runner: Any) -> Iterator[list[tuple[float, float]]]:
    """The same of each step of the runner."""
    spans: list[tuple[float, float]] = []
    entered = time.perf_counter()
    run = runner.run

    def timed(plan: Any) -> Any:
        begun = time.perf_counter()
        try:
            return run(plan)
        finally:
            spans.append((begun - entered, time.perf_counter() - begun))

    runner.run = timed
    yield spans
    runner.run = run


def main() -> None:
    """Run the sections asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    asked = parser.parse_args()
    bench = Bench(resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir))
    kept = json.loads(asked.out.read_text()) if asked.out is not None and asked.out.is_file() else {}
    report: dict[str, Any] = kept | {"machine": bench.machine}
    console.print_json(data={"machine": bench.machine})
    for name in asked.only:
        with console.status(name):
            started = time.perf_counter()
            figures = SECTIONS[name](bench)
        report[name] = figures | {
            "took_s": round(time.perf_counter() - started),
            "machine": {key: bench.machine[key] for key in ("read_gb_s", "fp32_tflop_s")},
            "load_after": round(psutil.getloadavg()[0], 2),
        }
        console.print_json(data={name: report[name]})
        if asked.out is not None:
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            asked.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
