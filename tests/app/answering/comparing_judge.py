"""A fake judge of candidates that is sure of those with given words."""

from collections.abc import Sequence

from retrieval.judge_layout import JudgedText

FOR, AGAINST = 9.0, -9.0


class ComparingJudge:
    """Implements `CandidateJudge`: `FOR` the candidates whose text has the words, `AGAINST` all others."""

    model = "comparing"
    revision = "j1"

    def __init__(self, words: str) -> None:
        self._words = words
        self.candidates: list[JudgedText] = []

    def count_tokens(self, question: str, candidates: Sequence[JudgedText]) -> int:
        parts = (f"{one.above} {one.before} {one.text}" for one in candidates)
        return len(question.split()) + sum(len(part.split()) for part in parts)

    def judge(self, question: str, candidates: Sequence[JudgedText]) -> list[float]:
        self.candidates += candidates
        return [FOR if self._words in one.text else AGAINST for one in candidates]
