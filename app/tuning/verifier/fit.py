"""Fits the weights of `app.answering.verification.support`: `python -m app.tuning.verifier.fit DATA EMBEDDER`.

DATA holds the question sets as folders, EMBEDDER is the embedding model's folder. A quarter of the documents is
held apart and measured on. What the rules forbid is left out: the regressions judge what they let through.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.answering.citing.citation import THRESHOLD
from app.answering.verification.support import Lexical, fragment_values, sentence_values
from app.answering.verification.verifier import Verifier
from app.tuning.verifier.examples import Example, answer_examples, scifact_examples
from retrieval.types import Chunk, Hit, Scores, Source, Span

Floats = npt.NDArray[np.float64]
_SHARE = 0.25  # of documents held apart
_CANDIDATES = 2  # passages an example may be decided by
_ROUNDS = 3  # of choosing each example's passage and fitting
# What made examples weigh beside found ones. Answers joined of two true halves are rare, and look like quotes.
_KIND_WEIGHTS = {"joined": 0.2, "number": 0.2, "name": 0.2}


@dataclass(frozen=True, slots=True)
class Case:
    """An example and the features of its allowed passages; the last is the embedder's cosine."""

    example: Example
    fragment: bool
    seen: tuple[tuple[Lexical, float], ...]


def source_of(text: str, *, heading: str, number: int = 1) -> Source:
    """Wraps a text with a heading as a presented source."""
    chunk = Chunk.of_text(text, key=number, heading_path=(heading,) if heading else ())
    spans = (Span(0, len(text)),)
    return Source(number, Hit(chunk, Scores(fused=1.0)), spans, header="", body=text, tokens=0, compressed=False)


def cases(examples: Iterable[Example], *, embed: Callable[[Sequence[str]], npt.NDArray[np.float32]]) -> list[Case]:
    """Converts examples to the verifier's features; every text is embedded once."""
    looked_at = []
    for example in examples:
        source = source_of(example.source, heading=example.heading)
        verifier = Verifier([source], question=example.question)
        claim = verifier.claim_of(example.claim)
        allowed = [candidate for candidate in verifier.candidates(claim) if not candidate.forbidden]
        looked_at.append((example, claim, allowed[:_CANDIDATES]))
    places: dict[str, int] = {}
    for _, claim, allowed in looked_at:
        for text in (claim.model_text, *(candidate.text for candidate in allowed)) if allowed else ():
            places.setdefault(text, len(places))
    vectors = embed(list(places))
    return [
        Case(
            example,
            claim.question is not None,
            tuple(
                (one.features, float(vectors[places[claim.model_text]] @ vectors[places[one.text]])) for one in allowed
            ),
        )
        for example, claim, allowed in looked_at
    ]


def fit(rows: Floats, labels: Floats, weights: Floats, *, ridge: float = 1.0, steps: int = 50) -> Floats:
    """Intercept and weights of a logistic regression by Newton's method (Hastie et al. 2009, section 4.4).

    Args:
        rows: (examples, features).
        labels: (examples,), 0 or 1.
        weights: (examples,), what each counts.
        ridge: Pulls the weights, not the intercept, to 0.
        steps: Of Newton's method.
    """
    design = np.column_stack([np.ones(len(rows)), rows])
    penalty = np.diag([1e-6, *[ridge] * rows.shape[1]])
    found: Floats = np.zeros(design.shape[1])
    for _ in range(steps):
        share = 1 / (1 + np.exp(-design @ found))
        slope = design.T @ (weights * (labels - share)) - penalty @ found
        curve = (design * (weights * share * (1 - share))[:, None]).T @ design + penalty
        found = found + np.linalg.solve(curve, slope)
    return found


def calibrated(known: Sequence[Case], *, fragment: bool, embedded: bool) -> tuple[Floats, list[float]]:
    """Fits weights for one kind of claim; also returns the support of each case, 0 where the rules veto.

    Sets count the same, and so do true and false within a set.
    """
    of_kind = [case for case in known if case.fragment is fragment]

    def values(case: Case) -> Floats:
        read = fragment_values if fragment else sentence_values
        return np.array([[*read(seen), *([cosine] if embedded else [])] for seen, cosine in case.seen])

    usable = [(case, values(case)) for case in of_kind if case.seen]
    trains = [(case, rows) for case, rows in usable if not case.example.apart]
    weights = _weights([case.example for case, _ in trains])
    labels = np.array([float(case.example.supported) for case, _ in trains])
    found: Floats | None = None
    for _ in range(_ROUNDS):
        chosen = np.array([rows[0] if found is None else rows[np.argmax(rows @ found[1:])] for _, rows in trains])
        found = fit(chosen, labels, weights)
    assert found is not None, "there is a round"
    weights_found = found
    supports = {id(case): float(np.max(_logistic(rows, weights_found))) for case, rows in usable}
    return weights_found, [supports.get(id(case), 0.0) for case in of_kind]


def _logistic(rows: Floats, weights: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-(weights[0] + rows @ weights[1:])))
    return share


def _weights(examples: Sequence[Example]) -> Floats:
    raw = np.array([_KIND_WEIGHTS.get(example.kind, 1.0) for example in examples])
    groups = [(example.dataset, example.supported) for example in examples]
    totals = Counter[tuple[str, bool]]()
    for group, weight in zip(groups, raw, strict=True):
        totals[group] += weight
    scaled: Floats = raw / np.array([totals[group] for group in groups])
    scaled *= len(examples) / scaled.sum()
    return scaled


def _report(known: Sequence[Case], supports: Sequence[float]) -> list[str]:
    """Prints held-out figures at the threshold by set, and the verified share by kind."""
    lines = []
    apart = [(case.example, support) for case, support in zip(known, supports, strict=True) if case.example.apart]
    for dataset in sorted({example.dataset for example, _ in apart}):
        mine = [(example, support >= THRESHOLD) for example, support in apart if example.dataset == dataset]
        verified = [example.supported for example, yes in mine if yes]
        true = sum(example.supported for example, _ in mine)
        precision = sum(verified) / len(verified) if verified else float("nan")
        recall = sum(verified) / true if true else float("nan")
        kinds = sorted({example.kind for example, _ in mine})
        shares = []
        for kind in kinds:
            of_kind = [yes for example, yes in mine if example.kind == kind]
            shares.append(f"{kind} {sum(of_kind) / len(of_kind):.2f} of {len(of_kind)}")
        lines.append(f"  {dataset}: precision {precision:.2f}, recall {recall:.2f}; verified: {', '.join(shares)}")
    return lines


def main() -> None:
    """Prints the four weight tuples and their results on held-out documents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the question sets")
    parser.add_argument("embedder", help="folder of the embedding model")
    parser.add_argument("--most", type=int, default=250, help="questions of each set that claims are made of")
    arguments = parser.parse_args()
    from retrieval.encoder import SentenceEncoder

    embedder = SentenceEncoder.load(arguments.embedder, dtype="float32")
    examples = list(scifact_examples(arguments.data / "scifact-train", share=_SHARE))
    for name in ("squadshift-new-wiki", "nq-gold", "pubmedqa-train", "tatqa-dev"):
        examples += answer_examples(arguments.data / name, share=_SHARE, most=arguments.most)
    known = cases(examples, embed=embedder.embed_documents)
    for fragment, embedded, name in (
        (False, False, "SENTENCE"),
        (False, True, "SENTENCE_EMBEDDED"),
        (True, False, "FRAGMENT"),
        (True, True, "FRAGMENT_EMBEDDED"),
    ):
        weights, supports = calibrated(known, fragment=fragment, embedded=embedded)
        print(f"{name} = ({', '.join(f'{weight:.2f}' for weight in weights)})")  # noqa: T201 - a command's output
        print("\n".join(_report([case for case in known if case.fragment is fragment], supports)))  # noqa: T201


if __name__ == "__main__":
    main()
