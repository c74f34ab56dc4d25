"""Lays out a question and the candidates that a judge compares, as one sequence of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

JUDGE_FILES = ("judge.safetensors",)
"""The files of a judge: what training changed; the others are its base's."""

QUESTION_TOKENS = 96
ABOVE_TOKENS = 56
BEFORE_TOKENS = 48
TEXT_TOKENS = 144
"""Most tokens of each part; of the sentence before a candidate the last ones are kept, of the others the first."""


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A candidate as a judge reads it.

    Attributes:
        above: What stands above its passage: the document's title, the heading, a table's header; may be empty.
        before: The sentence before it in its passage; may be empty.
        text: Its own text.
    """

    above: str
    before: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """The tokens of a question, and behind it those of each candidate.

    A candidate sees the question and itself, as if it alone followed the question.

    Attributes:
        prefix: Tokens of the question.
        branches: Tokens of each candidate; the judge's score is read at the last one.
    """

    prefix: tuple[int, ...]
    branches: tuple[tuple[int, ...], ...]

    @property
    def ids(self) -> list[int]:
        """All tokens in a row."""
        return [*self.prefix, *(token for branch in self.branches for token in branch)]

    @property
    def positions(self) -> list[int]:
        """The position of each token: every candidate begins behind the question."""
        start = len(self.prefix)
        return [*range(start), *(start + at for branch in self.branches for at in range(len(branch)))]

    @property
    def owners(self) -> list[int]:
        """The candidate of each token, -1 for the question's."""
        return [-1] * len(self.prefix) + [at for at, branch in enumerate(self.branches) for _ in branch]

    @property
    def ends(self) -> list[int]:
        """The place of each candidate's last token."""
        found, at = [], len(self.prefix) - 1
        for branch in self.branches:
            at += len(branch)
            found.append(at)
        return found


def layout(tokenizer: Any, question: str, candidates: Sequence[JudgedText]) -> JudgeInput:
    """The layout of a question and its candidates.

    Args:
        tokenizer: A `tokenizers.Tokenizer` of the judge's base, without truncation.
        question: Its text.
        candidates: At least one.
    """

    def tokens(text: str) -> list[int]:
        found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return found

    asked = tokens("Question: ") + tokens(_line(question))[:QUESTION_TOKENS] + tokens("\n")
    branches = []
    for one in candidates:
        branch: list[int] = []
        if one.above:
            branch += tokens("Document: ") + tokens(_line(one.above))[:ABOVE_TOKENS] + tokens("\n")
        if one.before:
            branch += tokens("Before: ") + tokens(_line(one.before))[-BEFORE_TOKENS:] + tokens("\n")
        branch += tokens("Answer: ") + tokens(_line(one.text))[:TEXT_TOKENS] + tokens("\nCorrect:")
        branches.append(tuple(branch))
    return JudgeInput(tuple(asked), tuple(branches))


def _line(text: str) -> str:
    return " ".join(text.split())
