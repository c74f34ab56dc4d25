"""Runs made of values, for tests of what is done with them."""

from app.evaluation.record import Example, ExampleDocument, Run, SetRun
from app.evaluation.run import overall, summarised

NDCG = "retrieval/hybrid/ndcg@10"


def set_run(
    name: str, values: dict[str, dict[str, float]], *, fingerprint: str = "f", examples: tuple[Example, ...] = ()
) -> SetRun:
    return SetRun(
        name=name,
        fingerprint=fingerprint,
        documents=10,
        questions=max(map(len, values.values())),
        values=values,
        summary=summarised(values, seed=0),
        groups={"en": summarised(values, seed=0)},
        examples=list(examples),
        notes=[f"A note about {name}."],
    )


def run_of(*sets: SetRun, settings: dict[str, str] | None = None) -> Run:
    return Run(
        created_at="2026-11-21T08:00:00+00:00",
        versions={"footnote-rag": "1"},
        settings=settings or {"embedder": "tiny"},
        options={"modes": "hybrid"},
        by="lang",
        sets=list(sets),
        overall=overall(sets, seed=0),
    )


def scored(*scores: float) -> dict[str, dict[str, float]]:
    """One search measure over questions q0, q1, …"""
    return {NDCG: {f"q{at}": score for at, score in enumerate(scores)}}


def example(text: str) -> Example:
    """A retrieval gone wrong whose every text is `text`."""
    passage = ExampleDocument(id=text, title=text, text=text, gold=True)
    return Example(
        kind="retrieval", id=text, question=text, score=0, gold=[passage], found=[passage], answers=[text], answer=text
    )
