"""Chooses the answerable question that stands in a group beside an unanswerable one."""

import random
from collections.abc import Iterator, Sequence

from app.tuning.bm25 import Bm25
from app.tuning.evidence_reader.mixture import Asked, Lacking, Source

_NEAREST = 2  # one of so many, so that a second pass sees another


class Partners:
    """Finds answerable questions of a source that are like an unanswerable one, by BM25 over the questions."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._index = Bm25([one.example.question for one in source.questions]) if source.questions else None
        self._of_passage: dict[str, list[int]] = {}
        self._of_document: dict[str, list[int]] = {}
        for row, one in enumerate(source.questions):
            self._of_passage.setdefault(one.passage, []).append(row)
            self._of_document.setdefault(source.document_of[one.passage], []).append(row)

    def beside(self, lacking: Lacking, random_: random.Random) -> Asked | None:
        """One of the answerable questions with the highest BM25 scores for the words of `lacking`.

        They are of its passage; where that answers no question of its document, else of the set. None where the set has
        no answerable question.
        """
        rows = next(filter(None, self._circles(lacking.passage)), None)
        if rows is None or self._index is None:
            return None
        scores = self._index.scores(lacking.question)
        nearest = sorted(rows, key=lambda row: -scores[row])[:_NEAREST]
        return self._source.questions[random_.choice(nearest)]

    def _circles(self, passage: str) -> Iterator[Sequence[int]]:
        yield self._of_passage.get(passage, ())
        yield self._of_document.get(self._source.document_of[passage], ())
        yield range(len(self._source.questions))
