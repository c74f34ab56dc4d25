"""What examples in training are pointed at, right or wrong, as a reader and extractive mode would."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.tuning.examples import Example, Statement
from retrieval.highlights import Highlight, pointer_to
from retrieval.types import Context, Span

_SENTENCE = 12  # words from which on what is pointed at is no short answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """How often what is right, and how often what is wrong.

    Of the questions with an answer, `pointed` are pointed at it; `stray` of those that sentences answer are
    pointed at one more that does not. Of the questions without an answer, `misled` are pointed at something all
    the same: before generation a reader has refused most of those for which it found nothing.
    """

    pointed: float = 0.85
    stray: float = 0.2
    misled: float = 0.75


class Pointing:
    """Draws what is pointed at; at most `room` tokens of it."""

    def __init__(
        self, random_: random.Random, *, room: int, count_tokens: Callable[[str], int], mixture: Mixture | None = None
    ) -> None:
        """`count_tokens` is the generator's own counter."""
        self._random = random_
        self._room = room
        self._count = count_tokens
        self._mixture = mixture or Mixture()

    def at(
        self, example: Example, context: Context, numbers: Mapping[str, int], asked: Sequence[Example]
    ) -> list[Highlight]:
        """Pointers into `context`, whose passages are its sources `numbers`, for one example of those `asked` of it."""
        room = self._room
        found: list[Highlight] = []
        for statement in self._drawn(example, asked):
            pointer = self._pointer(statement, context, numbers)
            if pointer is not None and (tokens := self._count(pointer.line)) <= room:
                room -= tokens
                found.append(pointer)
        return found

    def _drawn(self, example: Example, asked: Sequence[Example]) -> Sequence[Statement]:
        chance = self._random.random()
        others = [statement for other in asked if other is not example for statement in other.pointed]
        if not example.statements:
            if chance >= self._mixture.misled:
                return ()
            return example.pointed or self._random.sample(others, min(1, len(others)))
        if chance >= self._mixture.pointed:
            return ()
        is_open = any(_is_sentence(statement) for statement in example.pointed)
        strays = [other for other in others if is_open and _is_sentence(other)]
        if not strays or chance >= self._mixture.pointed * self._mixture.stray:
            return example.pointed
        drawn = [example.pointed[0], self._random.choice(strays)]
        self._random.shuffle(drawn)
        return drawn

    def _pointer(self, statement: Statement, context: Context, numbers: Mapping[str, int]) -> Highlight | None:
        """None where the passage is not shown, or says it across lines."""
        number = numbers.get(statement.passage)
        if number is None:
            return None
        text = context.sources[number - 1].hit.chunk.text
        start = text.find(statement.text)
        if start < 0:
            return None
        end = start + len(statement.text)
        # Extractive mode quotes whole sentences.
        if _is_sentence(statement) and text[end : end + 1] == ".":
            end += 1
        return pointer_to(number, statement.passage, Span(start, end), text[start:end])


def _is_sentence(statement: Statement) -> bool:
    return len(statement.text.split()) > _SENTENCE
