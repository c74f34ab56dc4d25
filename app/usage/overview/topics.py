"""Groups questions into topics by the words they share, in one pass with bounded work.

Leader clustering (Hartigan 1975, "Clustering Algorithms", chapter 3): each question joins the topic it is most like, or
begins one. Likeness is the weighted share of common words (Jaccard), where a word weighs more the fewer questions hold
it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from retrieval.words import terms

ALIKE = 0.4
"""The least likeness of a question and a topic it joins."""

_READ = 500  # characters of a question that are compared
_MOST_WORDS = 24  # of a question, the rarest
_MOST_CANDIDATES = 50  # topics that a question is compared with
_NAMED = 4  # words that name a topic


@dataclass(slots=True)
class Topic:
    """Questions that are alike. `members` are their places in the list, in its order; `words` name what they share."""

    members: list[int] = field(default_factory=list)
    words: tuple[str, ...] = ()


def topics(questions: Sequence[str]) -> list[Topic]:
    """The topics of `questions`, the largest first, and in the order of their first question."""
    read = [terms(question[:_READ]) for question in questions]
    holding = Counter(word for words in read for word in words)
    weights = {word: math.log(1 + len(read) / count) for word, count in holding.items()}
    found: list[Topic] = []
    held: list[Counter[str]] = []
    by_word: dict[str, list[int]] = {}
    for place, words in enumerate(read):
        rarest = sorted(words, key=lambda word: (-weights[word], word))[:_MOST_WORDS]
        best = _most_alike(frozenset(rarest), held, by_word, weights)
        if best is None:
            best = len(found)
            found.append(Topic())
            held.append(Counter())
        found[best].members.append(place)
        for word in rarest:
            if word not in held[best]:
                by_word.setdefault(word, []).append(best)
            held[best][word] += 1
    for topic, counts in zip(found, held, strict=True):
        topic.words = tuple(sorted(counts, key=lambda word: (-counts[word] * weights[word], word))[:_NAMED])
    return sorted(found, key=lambda topic: (-len(topic.members), topic.members[0]))


def _most_alike(
    words: frozenset[str],
    held: Sequence[Counter[str]],
    by_word: dict[str, list[int]],
    weights: dict[str, float],
) -> int | None:
    """The topic that a question joins; None where none is alike enough."""
    shared: Counter[int] = Counter()
    for word in words:
        shared.update(by_word.get(word, ())[-_MOST_CANDIDATES:])
    best, likeness = None, ALIKE
    for topic, _ in shared.most_common(_MOST_CANDIDATES):
        own = _core(held[topic])
        common = sum(weights[word] for word in words & own)
        either = sum(weights[word] for word in words | own)
        if either and common / either >= likeness:
            best, likeness = topic, common / either
    return best


def _core(counts: Counter[str]) -> frozenset[str]:
    """The words that at least half as many of the topic's questions hold as hold its commonest word."""
    most = max(counts.values())
    return frozenset(word for word, count in counts.items() if 2 * count >= most)
