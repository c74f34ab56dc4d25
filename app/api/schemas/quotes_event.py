"""The body of the event `quotes` in the stream of `POST /v1/ask`: the answer by quotes, while a model words its own."""

from typing import Self

from pydantic import Field

from app.answering.answers.answer import QuotesFound, Words, WordsState
from app.api.schemas.answers import ANSWERS, PARTS, WORDS, CitationBody, WordsBody
from app.api.schemas.parts import PartBody, part_body
from app.api.schemas.shape import ResponseBody


class QuotesEventBody(ResponseBody):
    """Quotes that may answer, shown until the answer is worded. They are not part of the answer."""

    answer: str = Field(description="The quotes as text, with markers.", examples=["> Revenue rose 12%. [1]"])
    answered: bool = Field(description="False where the quotes are the nearest passages and may not answer.")
    citations: list[CitationBody] = Field(description="Footnotes of the quotes, in the order of their markers.")
    parts: list[PartBody] = Field(description=PARTS)
    answers: float | None = Field(description=ANSWERS, examples=[0.97])
    words: WordsBody = Field(description=WORDS)

    @classmethod
    def of(cls, event: QuotesFound) -> Self:
        """The body for quotes."""
        return cls(
            answer=event.text,
            answered=event.reason is None,
            citations=[CitationBody.of(citation) for citation in event.citations],
            parts=[part_body(part) for part in event.parts],
            answers=event.probability,
            words=WordsBody.of(Words(WordsState.WAITING)),
        )
