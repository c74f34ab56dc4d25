"""Classes of language models, by how well they read sources, and how a model of each class is asked (docs/adr/0087)."""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from app.answering.generating.wording import STRONG, WRITER, Wording


class ModelClass(StrEnum):
    """How well a language model reads.

    Attributes:
        QUOTES: It reads worse than the span reader. Where it answers at all, it is pointed at the likeliest quotes.
        WRITER: It words one or two sentences from a few passages, about 1 to 4 billion parameters.
        STRONG: It joins sources and keeps the form of lists and tables, from about 7 billion parameters on.
    """

    QUOTES = "quotes"
    WRITER = "writer"
    STRONG = "strong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How a model is asked for an answer.

    Attributes:
        wording: The fixed texts of its prompt.
        passages: The most sources that it reads, those with the likeliest quotes; None for all that fit.
        tokens: The most tokens of those sources.
        pointed: Whether sentences are repeated behind the question, and the likeliest words are named.
        rereads: Whether it reads a question for which the span reader has found nothing.
    """

    wording: Wording
    passages: int | None = None
    tokens: int = 0
    pointed: bool = False
    rereads: bool = False


ASKING = MappingProxyType(
    {
        ModelClass.QUOTES: Asking(wording=Wording(), pointed=True),
        ModelClass.WRITER: Asking(wording=WRITER, passages=3, tokens=1200),
        ModelClass.STRONG: Asking(wording=STRONG, passages=12, tokens=4000, rereads=True),
    }
)
"""How a model of each class is asked. A question with several answers gets twice as many passages and tokens."""
