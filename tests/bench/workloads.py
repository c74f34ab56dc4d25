"""Prompts as a retrieval service sends them, from the project's own documents and from chance."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from generation.tokenizer import ChatTokenizer

DOCS = Path(__file__).resolve().parents[2] / "docs"
SYSTEM = "Answer the question using only the numbered sources. Use the sources' own words."


def random_prompts(count: int, length: int, *, seed: int) -> list[tuple[int, ...]]:
    """Token ids without any sense, unlike each other from the first token on: nothing can be reused."""
    generator = torch.Generator().manual_seed(seed)
    return [tuple(row) for row in torch.randint(1000, 40_000, (count, length), generator=generator).tolist()]


def passages(tokenizer: ChatTokenizer, *, size: int) -> list[list[int]]:
    """Our documentation cut into passages of `size` tokens."""
    cut = []
    for file in sorted(DOCS.rglob("*.md")):
        ids = tokenizer.encode(file.read_text())
        cut += [ids[start : start + size] for start in range(0, len(ids) - size, size)]
    return cut


@dataclass(frozen=True)
class Grounded:
    """A prompt of sources and a question, and where its sources are."""

    ids: tuple[int, ...]
    sources: tuple[tuple[int, int], ...]


def grounded(tokenizer: ChatTokenizer, sources: Sequence[Sequence[int]], question: str) -> Grounded:
    """System, numbered sources, question, in the model's chat template."""
    frame = tokenizer.chat_frame(["system", "user"])
    ids = [*frame[0], *tokenizer.encode(SYSTEM), *frame[1], *tokenizer.encode("Sources:\n\n")]
    spans = []
    for number, source in enumerate(sources, start=1):
        ids += tokenizer.encode(f"[{number}]\n")
        spans.append((len(ids), len(ids) + len(source)))
        ids += [*source, *tokenizer.encode("\n\n")]
    ids += [*tokenizer.encode(question), *frame[2]]
    return Grounded(tuple(ids), tuple(spans))


def popular(documents: int, picks: int, requests: int, *, seed: int) -> list[list[int]]:
    """Which documents each request retrieves: Zipf with 3 % of the documents drawing 60 % of the picks."""
    chance = random.Random(seed)
    exponent = zipf_exponent(documents, share=0.03, mass=0.6)
    weights = [1 / rank**exponent for rank in range(1, documents + 1)]
    chosen = []
    for _ in range(requests):
        found: list[int] = []
        while len(found) < picks:
            document = chance.choices(range(documents), weights)[0]
            if document not in found:
                found.append(document)
        chosen.append(found)
    return chosen


def zipf_exponent(documents: int, *, share: float, mass: float) -> float:
    """The exponent at which the first `share` of the documents draw `mass` of the picks, by bisection."""
    low, high = 0.0, 3.0
    for _ in range(50):
        middle = (low + high) / 2
        weights = [1 / rank**middle for rank in range(1, documents + 1)]
        got = sum(weights[: round(documents * share)]) / sum(weights)
        low, high = (middle, high) if got < mass else (low, middle)
    return (low + high) / 2
