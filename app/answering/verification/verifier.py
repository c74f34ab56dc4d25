"""Finds the passage that supports a claim best, and computes how well it does.

Words alone decide clear cases: quotations, and passages that cannot support a claim. Otherwise the
embedder's cosine of claim and passage is used; a model that reads both together, where one is configured, decides in
its place. A number, a month or a name that the evidence lacks, and a contradiction, rule out support in any case.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from app.answering.languages.statement import Statement, parse_statement
from app.answering.verification.contradiction import contradicts
from app.answering.verification.support import (
    DECIDED,
    FORBIDDEN,
    QUOTED,
    Claim,
    Lexical,
    asked_share,
    compare,
    forbids,
    is_fragment,
    lexical_support,
    semantic_support,
)
from retrieval.ports import Judge, Vectors
from retrieval.sentences import sentence_spans
from retrieval.types import Source, Span

# "1." and "(b)" of a list, or nothing but punctuation. "12 %" and "35" are answers.
_LABEL = re.compile(r"[^\w%]*(?:(?:\d{1,3}|[A-Za-z])[.):][^\w%]*)?")
_CANDIDATES = 8  # passages compared in detail, those that share most words with the claim
_EMBEDDED = 4  # of the candidates, those a model reads
_FEWEST_TERMS = 2  # of a claim without a question that completes it
_CONTRADICTED = 0.5  # probability of a contradiction from which a judged passage is no support
_ROUNDING = 1e-9
_FEWEST_QUOTED = 3  # words
_SHORT = 4  # words: a shorter passage with less than `_HALF` of the claim's words is a heading or names its subject
_HALF = 0.5
_MEMBER_SHARE = 0.4  # of a claim's words: a sentence that shares as many and contradicts rules out its pair


class SentenceEmbedder(Protocol):
    """Turns sentences into unit vectors. Implementations are made for each answer, so that they can meter it.

    Example:
        >>> embedder.embed(["The plant closed.", "It is shut."]).shape
        (2, 384)
    """

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best passage for a claim in one source: document offsets, and support in [0, 1]."""

    source: Source
    span: Span
    support: float


@dataclass(frozen=True, slots=True)
class _Passage:
    """One sentence, or two adjacent ones; `members` are then their indices in the list of passages."""

    source: Source
    span: Span
    text: str
    statement: Statement
    around: frozenset[str]
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """A passage that may support a claim.

    Attributes:
        at: Its index among the verifier's passages.
        text: The passage.
        features: Its lexical features with the claim.
        forbidden: Whether a rule keeps it from counting as support.
    """

    at: int
    text: str
    features: Lexical
    forbidden: bool


class Verifier:
    """Finds the best evidence for the claims of one answer. Not safe to call from several threads.

    Passages are taken apart at the first claim, and embedded when a claim needs them, each at most once.

    Example:
        >>> verifier = Verifier(sources, question="When did the plant close?")
        >>> evidence = verifier.best("It closed on 4 May.")
        >>> evidence.support >= THRESHOLD
        True
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        question: str = "",
        embedder: SentenceEmbedder | None = None,
        judge: Judge | None = None,
    ) -> None:
        """Verify against `sources`.

        Args:
            sources: The sources that were presented to the model.
            question: Completes answers of a few words. "" leaves them incomplete.
            embedder: Used where words do not decide; without one words always decide.
            judge: Reads claim and passage together, in the embedder's place.
        """
        self._sources = sources
        self._question = question
        self._asked = parse_statement(question)
        self._embedder = embedder
        self._judge = judge
        self._passages: list[_Passage] | None = None
        self._weights: dict[str, float] = {}
        self._vectors: dict[str, Vectors] = {}

    def is_claim(self, sentence: str, *, last: bool = False) -> bool:
        """Whether a sentence needs a source: it has enough words and is no list label, as the `last` never is."""
        if not last and _LABEL.fullmatch(sentence.strip()):
            return False
        return len(parse_statement(sentence).terms) >= (1 if self._question else _FEWEST_TERMS)

    def best(self, claim: str, *, number: int | None = None) -> Evidence | None:
        """The passage (one sentence or two adjacent ones) that supports `claim` best; None without any.

        Args:
            claim: A sentence of the answer, without markers.
            number: Only look in this source.
        """
        stated = self.claim_of(claim)
        candidates = self.candidates(stated, number=number)
        if not candidates:
            return None
        supports = self._supports(stated, candidates)
        # Of equal support the first: it shares most with the claim, and a sentence comes before a pair.
        best = max(range(len(candidates)), key=lambda at: (supports[at], -at))
        passage = self._all_passages()[candidates[best].at]
        return Evidence(passage.source, passage.span, round(supports[best], 4))

    def coverage(self, claim: str) -> float:
        """The largest share of the claim's words, weighted by rarity, that an allowed passage holds, in [0, 1].

        No model is called, and other than in `best` a short passage has no advantage.
        """
        candidates = self.candidates(self.claim_of(claim))
        return max((one.features.coverage for one in candidates if not one.forbidden), default=0.0)

    def claim_of(self, text: str) -> Claim:
        """A sentence of the answer as it is verified; a fragment is completed by its question."""
        said = parse_statement(text)
        if self._question and is_fragment(said):
            return Claim(text, parse_statement(text, fragment=True), self._asked, f"{self._question} {text}")
        return Claim(text, said, None, text)

    def candidates(self, claim: Claim, *, number: int | None = None) -> list[CandidateEvidence]:
        """The passages that share most with the claim, best first."""
        passages = self._all_passages()
        wanted = claim.statement.terms | (claim.question.terms if claim.question is not None else frozenset())

        def shared(at: int) -> tuple[float, int]:
            common = (passages[at].statement.terms & wanted) | (passages[at].around & (wanted - claim.statement.terms))
            return -sum(self._weights.get(stem, 0.0) for stem in sorted(common)), at

        # The words of a fragment and of its question must be in one sentence: a pair would join separate facts.
        places = [
            at
            for at, passage in enumerate(passages)
            if number in {None, passage.source.number} and not (claim.question is not None and passage.members)
        ]
        most_asked: dict[int, float] = {}
        for at in places:
            passage, source = passages[at], passages[at].source.number
            asked = asked_share(claim, passage.statement, around=passage.around, weights=self._weights)
            most_asked[source] = max(asked, most_asked.get(source, 0.0))
        compared = []
        for at in sorted(places, key=shared)[:_CANDIDATES]:
            passage = passages[at]
            features = compare(
                claim,
                passage.statement,
                around=passage.around,
                weights=self._weights,
                most_asked=most_asked[passage.source.number],
            )
            compared.append(CandidateEvidence(at, passage.text, features, self._forbidden(claim, passage)))
        contradicted: dict[int, float] = {}
        for one in compared:
            if not passages[one.at].members and contradicts(claim.statement, passages[one.at].statement):
                source = passages[one.at].source.number
                contradicted[source] = max(one.features.coverage, contradicted.get(source, 0.0))
        # "Revenue rose 12 percent. Costs fell 12 percent": a passage that shares no more words with "revenue fell"
        # than a contradicting sentence does is about something else.
        vetted = [
            replace(one, forbidden=True)
            if one.features.coverage <= contradicted.get(passages[one.at].source.number, -1.0) + _ROUNDING
            or self._says_too_little(one)
            else one
            for one in compared
        ]
        return sorted(vetted, key=lambda one: (-lexical_support(one.features), one.at))

    def _says_too_little(self, candidate: CandidateEvidence) -> bool:
        """Whether a passage is too short to support a sentence that it does not repeat, as "Revenue." is."""
        seen, words = candidate.features, self._all_passages()[candidate.at].statement.terms
        return not seen.fragment and seen.coverage < _HALF and len(words) < _SHORT

    def _forbidden(self, claim: Claim, passage: _Passage) -> bool:
        """Whether a rule forbids the passage, or one sentence of a pair is about the claim and contradicts it."""
        if forbids(claim.statement, passage.statement, around=passage.around):
            return True
        passages = self._all_passages()
        return any(
            contradicts(claim.statement, passages[at].statement)
            and len(claim.statement.terms & passages[at].statement.terms) >= _MEMBER_SHARE * len(claim.statement.terms)
            for at in passage.members
        )

    def _supports(self, claim: Claim, candidates: Sequence[CandidateEvidence]) -> list[float]:
        """Support in [0, 1] of each candidate."""
        supports = [self._by_words(claim, candidate) for candidate in candidates]
        allowed = [at for at, candidate in enumerate(candidates) if not candidate.forbidden][:_EMBEDDED]
        if self._judge is not None and allowed:
            judged = self._judge.judge(claim.model_text, [candidates[at].text for at in allowed])
            supports = [min(support, FORBIDDEN) for support in supports]
            for at, judgement in zip(allowed, judged, strict=True):
                supports[at] = judgement.entailment if judgement.contradiction < _CONTRADICTED else FORBIDDEN
        elif self._embedder is not None and (near := self._undecided(candidates, supports, allowed)):
            allowed = near
            cosines = self._cosines(claim.model_text, [candidates[at].text for at in allowed])
            supports = [min(support, FORBIDDEN) for support in supports]
            for at, cosine in zip(allowed, cosines, strict=True):
                supports[at] = semantic_support(candidates[at].features, cosine=cosine)
        return [
            min(support, FORBIDDEN) if candidate.forbidden else support
            for support, candidate in zip(supports, candidates, strict=True)
        ]

    def _by_words(self, claim: Claim, candidate: CandidateEvidence) -> float:
        """Support by words alone, at least `QUOTED` by a sentence that holds the whole claim in order."""
        seen = candidate.features
        single = not self._all_passages()[candidate.at].members
        quoted = min(seen.coverage, seen.order) > 1 - _ROUNDING and len(claim.statement.terms) >= _FEWEST_QUOTED
        support = lexical_support(seen)
        return max(support, QUOTED) if single and quoted and not seen.fragment else support

    def _undecided(
        self, candidates: Sequence[CandidateEvidence], supports: Sequence[float], allowed: Sequence[int]
    ) -> list[int]:
        """The allowed candidates that the embedder reads: those that share a word; none where words decide."""
        if any(supports[at] >= DECIDED for at in allowed):
            return []
        return [at for at in allowed if candidates[at].features.coverage > 0]

    def _cosines(self, claim: str, texts: Sequence[str]) -> list[float]:
        """Cosine similarity of the claim with each text; texts not embedded before are embedded in one call."""
        assert self._embedder is not None, "only called with an embedder"
        new = [text for text in dict.fromkeys([claim, *texts]) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))
        return [float(self._vectors[claim] @ self._vectors[text]) for text in texts]

    def _all_passages(self) -> list[_Passage]:
        if self._passages is None:
            self._passages = [passage for source in self._sources for passage in _singles(source)]
            self._passages += list(_pairs(self._passages))
            frequency = Counter(stem for passage in self._passages for stem in passage.statement.terms)
            total = len(self._passages)
            self._weights = {stem: math.log(1 + total / count) for stem, count in frequency.items()}
        return self._passages


def _singles(source: Source) -> Iterator[_Passage]:
    """The sentences of a source's presented text."""
    chunk = source.hit.chunk
    above = " ".join((*chunk.heading_path, chunk.filename))
    around = frozenset(parse_statement(above).words) | parse_statement(above).terms
    for kept in source.spans:
        piece = chunk.text_at(kept)
        for start, end in sentence_spans(piece):
            text = piece[start:end]
            span = Span(kept.start_char + start, kept.start_char + end)
            yield _Passage(source, span, text, parse_statement(text), around, ())


def _pairs(singles: Sequence[_Passage]) -> Iterator[_Passage]:
    """Each two neighbouring sentences of one presented span as a passage."""
    for at, (one, two) in enumerate(pairwise(singles)):
        kept = one.source.spans
        if one.source is not two.source or not any(
            span.start_char <= one.span.start_char and two.span.end_char <= span.end_char for span in kept
        ):
            continue
        span = Span(one.span.start_char, two.span.end_char)
        text = one.source.hit.chunk.text_at(span)
        yield _Passage(one.source, span, text, parse_statement(text), one.around, (at, at + 1))
