"""The engine beside `generate`, transformers' continuous batching and llama.cpp, on the same token ids."""

from itertools import takewhile
from typing import Any

from tests.bench.engine.bench import CONTEXT, NEW, ROUNDS, Bench
from tests.bench.engine.figures import against
from tests.bench.engine.report import console
from tests.bench.llama import llama_cpp, missing
from tests.bench.machine import median
from tests.bench.workloads import random_prompts


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
    return against(rates, "generate") | {
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
        "decode": against(decode, "generate, one batch"),
        "whole requests": against(whole, "generate, one by one"),
        "first token, s, median of the streams": {name: round(median(times), 2) for name, times in first.items()},
    }


def continuous_batching(bench: Bench) -> dict[str, Any]:
    """Eight requests again, beside transformers' own continuous batching, which takes minutes on a CPU."""
    subject = bench.engine(speculation=False)
    prompts = random_prompts(8, CONTEXT, seed=150)
    ours, theirs = subject.run(prompts, 16), bench.peer.continuous(prompts, 16)
    subject.engine.close()
    return against({"engine": [ours.rate], "transformers": [theirs.rate]}, "transformers") | {
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
    return against(rates, "transformers") | {
        "share_of_flops": {
            name: round(median(values) * flop / 1e12 / bench.machine["fp32_tflop_s"], 3)
            for name, values in rates.items()
        }
    }


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
        "decode": against(decode, peer),
        "prefill": against(read, peer),
        "share of tokens before the first that differs": round(equal / (ROUNDS * NEW), 3),
    }
