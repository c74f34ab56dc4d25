"""Training examples of the reranker: a question, an answering passage, and hard negatives of the first stage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.tuning.reranker.collection import Collection, Question
from app.tuning.reranker.first_stage import FirstStage
from retrieval.ports import Vectors

Embed = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True)
class Example:
    """A question, one answering passage, and negatives, hardest first."""

    query: str
    positive: str
    negatives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The first stage's results for a question: document ids and scores, best first, and the relevant ids."""

    query: str
    passages: tuple[str, ...]
    scores: tuple[float, ...]
    relevant: tuple[bool, ...]
    missing: int


def mine(
    collection: Collection, questions: Sequence[Question], *, share: float, pool: int, embed: Embed | None
) -> list[Example]:
    """One example for every relevant document of every question.

    Negatives are the first `pool` documents by BM25 and by the embedder together that may train, are
    not relevant, and are not another passage of a relevant article that holds a short answer: those
    are answers nobody judged.
    """
    ids = [key for key in collection.documents if not collection.held_apart(key, share=share)]
    texts = [collection.documents[key] for key in ids]
    lexical = FirstStage(texts, vectors=None)
    vectors = embed(texts) if embed else None
    asked = embed([question.text for question in questions]) if embed else None
    examples = []
    for number, question in enumerate(questions):
        rankings = [lexical.scores(question.text, vector=None)]
        if vectors is not None and asked is not None:
            rankings.append(vectors @ asked[number])
        near: dict[int, int] = {}
        for scores in rankings:
            for rank, row in enumerate(np.argsort(-scores, kind="stable")[:pool].tolist()):
                near[row] = min(rank, near.get(row, pool))
        titles = {collection.titles[key] for key in question.relevant} - {""}
        negatives = tuple(
            texts[row]
            for row in sorted(near, key=lambda row: (near[row], row))
            if ids[row] not in question.relevant
            and not (collection.titles[ids[row]] in titles and _holds_an_answer(texts[row], question))
        )
        examples += [Example(question.text, collection.documents[key], negatives) for key in sorted(question.relevant)]
    return examples


def candidates(
    collection: Collection, questions: Sequence[Question], *, first: int, embed: Embed | None
) -> list[Candidates]:
    """The first `first` documents of the whole collection for each question, to measure on."""
    ids, texts = list(collection.documents), list(collection.documents.values())
    stage = FirstStage(texts, vectors=embed(texts) if embed else None)
    asked = embed([question.text for question in questions]) if embed else None
    found = []
    for number, question in enumerate(questions):
        scores = stage.scores(question.text, vector=asked[number] if asked is not None else None)
        rows = np.argsort(-scores, kind="stable")[:first].tolist()
        relevant = tuple(ids[row] in question.relevant for row in rows)
        found.append(
            Candidates(
                query=question.text,
                passages=tuple(texts[row] for row in rows),
                scores=tuple(float(scores[row]) for row in rows),
                relevant=relevant,
                missing=len(question.relevant) - sum(relevant),
            )
        )
    return found


def batches(examples: Sequence[Example], *, questions: int, negatives: int, seed: int) -> list[list[Example]]:
    """One pass over `examples` in batches of `questions`, each with `negatives` of its near misses, drawn anew.

    Examples of similar length share a batch, so that little is padded; which come when is drawn.
    """
    draw = np.random.default_rng(seed)
    drawn = []
    for at in draw.permutation(len(examples)).tolist():
        example = examples[at]
        if len(example.negatives) < negatives:
            continue
        chosen = draw.choice(len(example.negatives), size=negatives, replace=False)
        drawn.append(Example(example.query, example.positive, tuple(example.negatives[row] for row in sorted(chosen))))
    window = questions * 16
    result = []
    for start in range(0, len(drawn), window):
        similar = sorted(drawn[start : start + window], key=_length)
        result += [similar[at : at + questions] for at in range(0, len(similar), questions)]
    return [result[at] for at in draw.permutation(len(result)).tolist()]


def _length(example: Example) -> int:
    return len(example.query) * (1 + len(example.negatives)) + len(example.positive) + sum(map(len, example.negatives))


def _holds_an_answer(text: str, question: Question) -> bool:
    return any(len(answer) > 2 and answer.casefold() in text.casefold() for answer in question.answers)
