"""How well the presented passages support a claim, and which of them does best.

Lexical evidence comes first: what is quoted, and what a passage cannot support, is decided by words
alone. Between the two the embedder is asked how close claim and passage are; where the user set a
model that reads both together, that one decides instead. Whatever they say, a number, a month or a
name that the evidence lacks, a negation on one side and an opposite forbid to call it support.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.answering.verification.calibration import DECIDED, FORBIDDEN, QUOTED, lexical_support, semantic_support
from app.answering.verification.contradiction import contradicts
from app.answering.verification.features import Claim, Lexical, asked_share, compare, forbids, is_fragment
from app.answering.verification.ports import SentenceEmbedder
from app.answering.verification.statement import Statement, read_statement
from retrieval.ports import Judge, Vectors
from retrieval.sentences import sentence_spans
from retrieval.types import Source, Span

# "1." and "(b)" of a list, or nothing but marks. "12 %" and "35" are answers.
_LABEL = re.compile(r"[^\w%]*(?:(?:\d{1,3}|[A-Za-z])[.):][^\w%]*)?")
_CANDIDATES = 8  # passages compared word by word, those that share most with the claim
_EMBEDDED = 4  # of these, passages a model reads
_FEWEST_TERMS = 2  # one word says nothing, unless there is a question it answers
_CONTRADICTED = 0.5  # probability of a contradiction from which a judged passage is no support
_ROUNDING = 1e-9
_FEWEST_QUOTED = 3  # words
_HALF, _SHORT = (
    0.5,
    4,
)  # a passage of fewer words that has not half of the claim's is a heading, or speaks of its subject
_MEMBER_SHARE = 0.4  # of a claim's words: a sentence that speaks of so much of it and contradicts spoils its pair


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best passage for a claim in one source: document offsets, and support in [0, 1]."""

    source: Source
    span: Span
    support: float


@dataclass(frozen=True, slots=True)
class _Passage:
    """One sentence, or two adjacent ones with their places in the list."""

    source: Source
    span: Span
    text: str
    statement: Statement
    around: frozenset[str]
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage beside a claim: its place among the passages, its text, what words say, and what the rules say."""

    at: int
    text: str
    features: Lexical
    forbidden: bool


class Verifier:
    """Finds the best evidence for the claims of one answer. Not for several threads at once.

    Passages are read when the first claim comes, and embedded when one needs them, each at most once.
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
            sources: What was presented to the model.
            question: What is answered: it completes answers of a few words. "" leaves them incomplete.
            embedder: Asked where words do not decide; without one they always do.
            judge: Reads claim and passage together, instead of the embedder.
        """
        self._sources = sources
        self._question = question
        self._asked = read_statement(question)
        self._embedder = embedder
        self._judge = judge
        self._passages: list[_Passage] | None = None
        self._weights: dict[str, float] = {}
        self._vectors: dict[str, Vectors] = {}

    def is_claim(self, sentence: str, *, last: bool = False) -> bool:
        """Whether a sentence says enough to need a source; the `last` of an answer is no label of what follows."""
        if not last and _LABEL.fullmatch(sentence.strip()):
            return False
        return len(read_statement(sentence).terms) >= (1 if self._question else _FEWEST_TERMS)

    def best(self, claim: str, *, number: int | None = None) -> Evidence | None:
        """The passage (one sentence or two adjacent ones) that supports `claim` best; None without any.

        Args:
            claim: A sentence of the answer, without markers.
            number: Only look in this source.
        """
        stated = self.read(claim)
        candidates = self.candidates(stated, number=number)
        if not candidates:
            return None
        supports = self._supports(stated, candidates)
        # Of equal support the first: what shares most with the claim, and a sentence before a pair of them.
        best = max(range(len(candidates)), key=lambda at: (supports[at], -at))
        passage = self._read()[candidates[best].at]
        return Evidence(passage.source, passage.span, round(supports[best], 4))

    def coverage(self, claim: str) -> float:
        """How much of the claim's words, weighed by rarity, one passage that the rules allow holds at most, in [0, 1].

        What `best` would be by shared words alone: no model is asked, and no passage gains by being short.
        """
        candidates = self.candidates(self.read(claim))
        return max((one.features.coverage for one in candidates if not one.forbidden), default=0.0)

    def read(self, text: str) -> Claim:
        """A sentence of the answer as it is verified: one of a few words together with its question."""
        said = read_statement(text)
        if self._question and is_fragment(said):
            return Claim(text, read_statement(text, fragment=True), self._asked, f"{self._question} {text}")
        return Claim(text, said, None, text)

    def candidates(self, claim: Claim, *, number: int | None = None) -> list[Candidate]:
        """The passages that share most with the claim, best first."""
        passages = self._read()
        wanted = claim.said.terms | (claim.asked.terms if claim.asked is not None else frozenset())

        def shared(at: int) -> tuple[float, int]:
            common = (passages[at].statement.terms & wanted) | (passages[at].around & (wanted - claim.said.terms))
            return -sum(self._weights.get(stem, 0.0) for stem in sorted(common)), at

        # The words of a question beside an answer's own must be in one sentence: pairs would join what is apart.
        places = [
            at
            for at, passage in enumerate(passages)
            if number in {None, passage.source.number} and not (claim.asked is not None and passage.members)
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
            compared.append(Candidate(at, passage.text, features, self._forbidden(claim, passage)))
        spoken_against: dict[int, float] = {}
        for one in compared:
            if not passages[one.at].members and contradicts(claim.said, passages[one.at].statement):
                source = passages[one.at].source.number
                spoken_against[source] = max(one.features.coverage, spoken_against.get(source, 0.0))
        # "Revenue rose 12 percent. Costs fell 12 percent": what shares no more with "revenue fell" than a
        # sentence that says the opposite is about something else.
        vetted = [
            replace(one, forbidden=True)
            if one.features.coverage <= spoken_against.get(passages[one.at].source.number, -1.0) + _ROUNDING
            or self._says_too_little(one)
            else one
            for one in compared
        ]
        return sorted(vetted, key=lambda one: (-lexical_support(one.features), one.at))

    def _says_too_little(self, candidate: Candidate) -> bool:
        """Whether a passage is too short to support a sentence it does not repeat: "Revenue." says nothing of it."""
        seen, words = candidate.features, self._read()[candidate.at].statement.terms
        return not seen.fragment and seen.coverage < _HALF and len(words) < _SHORT

    def _forbidden(self, claim: Claim, passage: _Passage) -> bool:
        """Whether the rules forbid it, by itself or, of a pair, by the sentence in it that is about the claim."""
        if forbids(claim.said, passage.statement, around=passage.around):
            return True
        passages = self._read()
        return any(
            contradicts(claim.said, passages[at].statement)
            and len(claim.said.terms & passages[at].statement.terms) >= _MEMBER_SHARE * len(claim.said.terms)
            for at in passage.members
        )

    def _supports(self, claim: Claim, candidates: Sequence[Candidate]) -> list[float]:
        """Support in [0, 1] of each candidate."""
        supports = [self._by_words(claim, candidate) for candidate in candidates]
        allowed = [at for at, candidate in enumerate(candidates) if not candidate.forbidden][:_EMBEDDED]
        if self._judge is not None and allowed:
            judged = self._judge.judge(claim.whole, [candidates[at].text for at in allowed])
            supports = [min(support, FORBIDDEN) for support in supports]
            for at, judgement in zip(allowed, judged, strict=True):
                supports[at] = judgement.entailment if judgement.contradiction < _CONTRADICTED else FORBIDDEN
        elif self._embedder is not None and (near := self._undecided(candidates, supports, allowed)):
            allowed = near
            cosines = self._cosines(claim.whole, [candidates[at].text for at in allowed])
            supports = [min(support, FORBIDDEN) for support in supports]
            for at, cosine in zip(allowed, cosines, strict=True):
                supports[at] = semantic_support(candidates[at].features, cosine=cosine)
        return [
            min(support, FORBIDDEN) if candidate.forbidden else support
            for support, candidate in zip(supports, candidates, strict=True)
        ]

    def _by_words(self, claim: Claim, candidate: Candidate) -> float:
        """Support by words; what more a sentence says that has all of the claim in its order does not matter."""
        seen = candidate.features
        single = not self._read()[candidate.at].members
        quoted = min(seen.coverage, seen.order) > 1 - _ROUNDING and len(claim.said.terms) >= _FEWEST_QUOTED
        support = lexical_support(seen)
        return max(support, QUOTED) if single and quoted and not seen.fragment else support

    def _undecided(
        self, candidates: Sequence[Candidate], supports: Sequence[float], allowed: Sequence[int]
    ) -> list[int]:
        """Which of the allowed ones the embedder reads: those that share a word, unless words decide for one."""
        if any(supports[at] >= DECIDED for at in allowed):
            return []
        return [at for at in allowed if candidates[at].features.coverage > 0]

    def _cosines(self, claim: str, texts: Sequence[str]) -> list[float]:
        """Cosine similarity of the claim with each text; all that is not known yet is embedded at once."""
        assert self._embedder is not None, "asked for by whoever has one"
        new = [text for text in dict.fromkeys([claim, *texts]) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))
        return [float(self._vectors[claim] @ self._vectors[text]) for text in texts]

    def _read(self) -> list[_Passage]:
        if self._passages is None:
            self._passages = [passage for source in self._sources for passage in _singles(source)]
            self._passages += list(_pairs(self._passages))
            frequency = Counter(stem for passage in self._passages for stem in passage.statement.terms)
            total = len(self._passages)
            self._weights = {stem: math.log(1 + total / count) for stem, count in frequency.items()}
        return self._passages


def _singles(source: Source) -> Iterator[_Passage]:
    """The sentences of a source's kept text."""
    chunk = source.hit.chunk
    above = " ".join((*chunk.heading_path, chunk.filename))
    around = frozenset(read_statement(above).words) | read_statement(above).terms
    for kept in source.spans:
        piece = chunk.text[kept.start_char - chunk.start_char : kept.end_char - chunk.start_char]
        for start, end in sentence_spans(piece):
            text = piece[start:end]
            span = Span(kept.start_char + start, kept.start_char + end)
            yield _Passage(source, span, text, read_statement(text), around, ())


def _pairs(singles: Sequence[_Passage]) -> Iterator[_Passage]:
    """Neighbouring sentences of one kept stretch as one passage each."""
    for at, (one, two) in enumerate(pairwise(singles)):
        kept = one.source.spans
        if one.source is not two.source or not any(
            span.start_char <= one.span.start_char and two.span.end_char <= span.end_char for span in kept
        ):
            continue
        chunk, span = one.source.hit.chunk, Span(one.span.start_char, two.span.end_char)
        text = chunk.text[span.start_char - chunk.start_char : span.end_char - chunk.start_char]
        yield _Passage(one.source, span, text, read_statement(text), one.around, (at, at + 1))
