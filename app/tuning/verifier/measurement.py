"""Measures how far `verified` can be trusted: `python -m app.tuning.verifier.measurement FOLDER EMBEDDER`.

FOLDER holds climate-fever-mini (Diggelmann et al. 2020, arXiv:2012.00614): claims beside sentences that people
judged to support or refute them, or to say too little. As many claims are put beside a sentence of another
claim. Nothing is fitted or chosen on it. What summaries are held to, shared words alone, is measured beside it.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.answering.citing.citation import THRESHOLD
from app.answering.verification.verifier import SentenceEmbedder, Verifier
from app.tuning.verifier.fit import source_of
from retrieval.ports import Judge
from retrieval.types import Source

_RESAMPLES = 2000
_CHART = 320  # pixels of a side


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim beside a sentence: `label` is SUPPORTS, REFUTES, NOT_ENOUGH_INFO or SWAPPED."""

    claim_id: str
    claim: str
    sentence: str
    title: str
    label: str


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % percentile interval (Efron and Tibshirani 1993, chapter 13), claims resampled."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def read_pairs(folder: Path, *, claims: int | None = None, seed: int = 0) -> list[Pair]:
    """The judged pairs, then as many swapped ones as claims are supported; `claims` limits to so many at random.

    Raises:
        OSError, KeyError, ValueError: The folder is not the set.
    """
    assert claims is None or claims >= 2, "a swapped sentence is another claim's"
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    sentences = {row["_id"]: row for row in _rows(folder / "corpus.jsonl")}
    texts = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    chosen = set(texts if claims is None else rng.sample(sorted(texts), min(claims, len(texts))))
    judged = []
    for row in _rows(folder / "spans.jsonl"):
        if row["query_id"] in chosen:
            sentence = sentences[row["corpus_id"]]
            judged.append(
                Pair(row["query_id"], texts[row["query_id"]], sentence["text"], sentence["title"], row["label"])
            )
    others = {
        claim_id: [pair for pair in judged if pair.claim_id != claim_id]
        for claim_id in sorted({pair.claim_id for pair in judged})
    }
    swapped = []
    for pair in judged:
        if pair.label == "SUPPORTS" and others[pair.claim_id]:
            other = rng.choice(others[pair.claim_id])
            swapped.append(Pair(pair.claim_id, pair.claim, other.sentence, other.title, "SWAPPED"))
    return [*judged, *swapped]


def supports(pairs: Sequence[Pair], support: Callable[[str, Source], float]) -> npt.NDArray[np.float64]:
    """(len(pairs),) support of each claim by its sentence as the one presented source."""
    return np.array([support(pair.claim, source_of(pair.sentence, heading=pair.title)) for pair in pairs])


def rates(
    pairs: Sequence[Pair], values: npt.NDArray[np.float64], *, threshold: float, seed: int = 0
) -> dict[str, Rate]:
    """Rates of verification at `threshold`, by name.

    `precision` and `recall` count every label, a sentence that says too little as no support; `settled
    precision` leaves those out. `verified X` is the share of label X that is verified.
    """
    labels = np.array([pair.label for pair in pairs])
    yes = values >= threshold
    columns = {
        "precision": ((labels == "SUPPORTS") & yes, yes),
        "settled precision": ((labels == "SUPPORTS") & yes, yes & (labels != "NOT_ENOUGH_INFO")),
        "recall": ((labels == "SUPPORTS") & yes, labels == "SUPPORTS"),
        "verified REFUTES": ((labels == "REFUTES") & yes, labels == "REFUTES"),
        "verified NOT_ENOUGH_INFO": ((labels == "NOT_ENOUGH_INFO") & yes, labels == "NOT_ENOUGH_INFO"),
        "verified SWAPPED": ((labels == "SWAPPED") & yes, labels == "SWAPPED"),
    }
    claims, owner = np.unique([pair.claim_id for pair in pairs], return_inverse=True)
    rng = np.random.default_rng(seed)
    total = len(claims)
    draws = np.array([np.bincount(rng.integers(0, total, total), minlength=total) for _ in range(_RESAMPLES)])
    found = {}
    for name, (hits, of) in columns.items():
        above = np.bincount(owner, weights=hits, minlength=len(claims))
        below = np.bincount(owner, weights=of, minlength=len(claims))
        spread = (draws @ above) / np.maximum(draws @ below, 1)
        low, high = np.percentile(spread, [2.5, 97.5])
        found[name] = Rate(float(above.sum() / max(below.sum(), 1)), float(low), float(high))
    return found


def curve(pairs: Sequence[Pair], values: npt.NDArray[np.float64], *, settled: bool) -> list[tuple[float, float]]:
    """(recall, precision) at every threshold, highest first; `settled` leaves out sentences that say too little."""
    kept = [(value, pair.label == "SUPPORTS") for pair, value in zip(pairs, values, strict=True)
            if not settled or pair.label != "NOT_ENOUGH_INFO"]  # fmt: skip
    kept.sort(key=lambda one: -one[0])
    true = sum(supported for _, supported in kept)
    points, hits = [], 0
    for at, (value, supported) in enumerate(kept, start=1):
        hits += supported
        if at == len(kept) or kept[at][0] != value:
            points.append((hits / max(true, 1), hits / at))
    return points


def chart(curves: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """Draws precision over recall as a standalone SVG, one line per name."""
    strokes = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
    lines = []
    for at, (name, points) in enumerate(curves):
        stroke = strokes[at % len(strokes)]
        path = " ".join(f"{40 + x * _CHART:.1f},{10 + (1 - y) * _CHART:.1f}" for x, y in points)
        lines.append(f'<polyline fill="none" stroke="{stroke}" points="{path}"/>')
        lines.append(f'<text x="50" y="{_CHART - 50 + 16 * at}" fill="{stroke}">{name}</text>')
    ticks = "".join(
        f'<text x="{40 + share * _CHART / 4:.0f}" y="{_CHART + 26}" text-anchor="middle">{share / 4:.2f}</text>'
        f'<text x="34" y="{14 + (4 - share) * _CHART / 4:.0f}" text-anchor="end">{share / 4:.2f}</text>'
        for share in range(5)
    )
    frame = f'<rect x="40" y="10" width="{_CHART}" height="{_CHART}" fill="none" stroke="#999"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_CHART + 60} {_CHART + 40}" font-size="11" '
        f'role="img" aria-label="Precision over recall">{frame}{ticks}{"".join(lines)}</svg>'
    )


def by_shared_words(claim: str, source: Source) -> float:
    """How much of the claim the source's sentences hold, where the rules allow it, as summaries are checked."""
    return Verifier([source]).coverage(claim)


def by_verifier(
    *, embedder: SentenceEmbedder | None = None, judge: Judge | None = None
) -> Callable[[str, Source], float]:
    """The support computed by the verifier with these models."""

    def support(claim: str, source: Source) -> float:
        evidence = Verifier([source], embedder=embedder, judge=judge).best(claim)
        return evidence.support if evidence is not None else 0.0

    return support


def main() -> None:
    """Prints and draws the precision and recall of each way of verifying."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="climate-fever-mini")
    parser.add_argument("embedder", help="folder of the embedding model")
    parser.add_argument("--verifier", help="folder of a cross-encoder that judges, too")
    parser.add_argument("--claims", type=int, help="so many claims, at random, instead of all")
    parser.add_argument("--chart", type=Path, help="where to write precision over recall as SVG")
    arguments = parser.parse_args()
    from retrieval.encoder import SentenceEncoder
    from retrieval.entailment import EntailmentModel

    pairs = read_pairs(arguments.folder, claims=arguments.claims)
    embedder = Remembered(SentenceEncoder.load(arguments.embedder, dtype="float32").embed_documents)
    embedder.embed([text for pair in pairs for text in (pair.claim, pair.sentence)])
    ways = [
        ("shared words", by_shared_words, THRESHOLD),
        ("words", by_verifier(), THRESHOLD),
        ("words and embedder", by_verifier(embedder=embedder), THRESHOLD),
    ]
    if arguments.verifier:
        judge = EntailmentModel.load(arguments.verifier)
        ways.append((f"judged by {judge.model}", by_verifier(judge=judge), THRESHOLD))
    curves = []
    for name, support, threshold in ways:
        values = supports(pairs, support)
        print(f"{name}, at {threshold}")  # noqa: T201 - a command's output
        for label, rate in rates(pairs, values, threshold=threshold).items():
            print(f"  {label}: {rate}")  # noqa: T201
        curves.append((name, curve(pairs, values, settled=True)))
    if arguments.chart:
        arguments.chart.write_text(chart(curves), encoding="utf-8")


class Remembered:
    """Embeds each text once."""

    def __init__(self, embed: Callable[[Sequence[str]], npt.NDArray[np.float32]]) -> None:
        self._embed = embed
        self._rows: dict[str, npt.NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(len(texts), dim) float32 unit rows."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            self._rows.update(zip(new, self._embed(new), strict=True))
        return np.array([self._rows[text] for text in texts], dtype=np.float32)


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


if __name__ == "__main__":
    main()
