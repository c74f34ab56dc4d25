"""How well a passage supports a claim, by the words they share.

Lexical evidence only: every content word of the claim weighs by its rarity among the presented
sentences, and the score is the share of that weight found in the passage. A number in the claim
that the passage lacks caps the score, since a wrong figure is the costliest mistake. It is a
thin, explainable check; it does not see paraphrase or negation (docs/adr/0009).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.sentences import sentence_spans
from retrieval.types import Source, Span
from retrieval.words import STOP_WORDS, terms

THRESHOLD = 0.6
"""Least support that counts as verified. Fixed: it is never lowered until something matches."""

_MISSING_NUMBER_CAP = 0.3
_FEWEST_TERMS = 2  # one shared word supports nothing
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best passage for a claim in one source: document offsets, and support in [0, 1]."""

    source: Source
    span: Span
    support: float


@dataclass(frozen=True, slots=True)
class _Passage:
    source: Source
    span: Span
    terms: frozenset[str]


def content_terms(text: str) -> frozenset[str]:
    """The content words of `text`, and its numbers whole ("1,234.5" is one term, written 1234.5)."""
    words = {term for term in terms(text) - STOP_WORDS if not any(char.isdigit() for char in term)}
    return frozenset(words) | {re.sub(r"[,:](?=\d{3}\b)", "", number) for number in _NUMBER.findall(text)}


class Verifier:
    """Finds the best evidence for a claim among the presented sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._passages = [passage for source in sources for passage in _passages(source)]
        frequency = Counter(term for passage in self._passages for term in passage.terms)
        total = len(self._passages)
        self._weight = {term: math.log(1 + total / count) for term, count in frequency.items()}
        self._unseen = math.log(1 + total) if total else 1.0

    def is_claim(self, sentence: str) -> bool:
        """Whether a sentence says enough to need a source."""
        return len(content_terms(sentence)) >= _FEWEST_TERMS

    def best(self, claim: str, *, number: int | None = None) -> Evidence | None:
        """The passage (one sentence or two adjacent ones) that supports `claim` best.

        Args:
            claim: A sentence of the answer, without markers.
            number: Only look in this source.
        """
        wanted = content_terms(claim)
        best: Evidence | None = None
        for passage in self._passages:
            if number is not None and passage.source.number != number:
                continue
            support = self._support(wanted, passage.terms)
            if best is None or support > best.support:
                best = Evidence(passage.source, passage.span, support)
        return best

    def _support(self, claim: frozenset[str], passage: frozenset[str]) -> float:
        if not claim:
            return 0.0
        weights = {term: self._weight.get(term, self._unseen) for term in claim}
        found = sum(weight for term, weight in weights.items() if term in passage)
        support = found / sum(weights.values())
        if any(term[0].isdigit() and term not in passage for term in claim):
            support = min(support, _MISSING_NUMBER_CAP)
        return round(support, 4)


def _passages(source: Source) -> list[_Passage]:
    """Single sentences first, so that of equal support the shortest passage is cited, then adjacent pairs."""
    chunk = source.hit.chunk
    single: list[_Passage] = []
    pairs: list[_Passage] = []
    for kept in source.spans:
        piece = chunk.text[kept.start_char - chunk.start_char : kept.end_char - chunk.start_char]
        sentences = [Span(kept.start_char + a, kept.start_char + b) for a, b in sentence_spans(piece)]
        for index, span in enumerate(sentences):
            single.append(_passage(source, span))
            if index:
                pairs.append(_passage(source, Span(sentences[index - 1].start_char, span.end_char)))
    return single + pairs


def _passage(source: Source, span: Span) -> _Passage:
    chunk = source.hit.chunk
    text = chunk.text[span.start_char - chunk.start_char : span.end_char - chunk.start_char]
    return _Passage(source, span, content_terms(text))
