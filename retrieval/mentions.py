"""Raises passages whose heading a better passage mentions."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import log

from retrieval.memo import remembered

# Chosen on hotpotqa, musique, nq-gold and scifact; the optimum is flat (docs/EXPERIMENTS.md).
WEIGHT = 0.15
SOURCES = 10
CANDIDATES = 100

_LEAST_LETTERS = 4
_PARENTHESES = re.compile(r"\([^()]*\)|（[^（）]*）")
# Scripts without spaces give one word a character, so that a name is found within a line of them.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_BLANKS = str.maketrans({letter: " " for letter in map(chr, range(128)) if not (letter.isalnum() or letter == "_")})
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def lift_mentioned(
    ranking: Sequence[tuple[int, float]], texts: Mapping[int, tuple[str, str]], *, weight: float = WEIGHT
) -> list[tuple[int, float]]:
    """Raise candidates whose heading occurs in the text of the best ones.

    A question that takes two passages often shares its words with the first alone; the second is
    under the name that connects them, the bridge (Yang et al. 2018, "HotpotQA", EMNLP), and the
    first has that name. A mention weighs by the square of the mentioning passage's score over the best one's,
    less the more candidates have the same name, and 0 when all do. Of the passages under one
    name the best is raised.

    Args:
        ranking: (key, score) best first, scores in [0, 1].
        texts: (innermost heading or "", text) by key; those of the first `CANDIDATES` suffice, a key that is
            not there stays where it is.
        weight: The increase by a mention in the best passage, as a share of that passage's score.

    Returns:
        Every key of `ranking`, best first, ties by key ascending; unchanged where no passage mentions
        another. Scores stay in [0, 1]: divided by the best where that exceeds 1.
    """
    candidates = [(key, score) for key, score in ranking[:CANDIDATES] if key in texts]
    if len(candidates) < 2 or candidates[0][1] <= 0.0:
        return list(ranking)
    names = [_name(texts[key][0]) for key, _ in candidates]
    said = _Said([texts[key][1] for key, _ in candidates], names)
    best = candidates[0][1]
    lifts: dict[int, float] = {}
    for name in dict.fromkeys(filter(None, names)):
        source = said.first(name)
        if source is not None:
            rarity = max(0.0, 1.0 - log(said.count(name)) / log(CANDIDATES))
            lifts[candidates[names.index(name)][0]] = best * rarity * (candidates[source][1] / best) ** 2
    if not lifts:
        return list(ranking)
    lifted = {key: score + weight * lifts.get(key, 0.0) for key, score in ranking}
    top = max(1.0, *lifted.values())
    return sorted(((key, score / top) for key, score in lifted.items()), key=lambda pair: (-pair[1], pair[0]))


class _Said:
    """Finds the texts that contain a name. Few names are in the best texts, and only those are sought in the others."""

    def __init__(self, texts: Sequence[str], names: Sequence[str]) -> None:
        self._texts = texts
        self._names = names
        self._best = [_words(text) for text in texts[:SOURCES]]
        self._vocabulary = frozenset[str]().union(*(words.split() for words in self._best))

    def first(self, name: str) -> int | None:
        """The index of the first of the best texts that mentions `name` and does not have it as its heading."""
        if name.split(maxsplit=1)[0] not in self._vocabulary:
            return None
        return next((row for row, words in enumerate(self._best) if name in words and self._names[row] != name), None)

    def count(self, name: str) -> int:
        """The number of texts that mention `name` and do not have it as their heading."""
        first = name.split(maxsplit=1)[0]
        return sum(
            other != name and first in folded and name in _words(text)
            for text, folded, other in zip(self._texts, self._folded, self._names, strict=True)
        )

    @cached_property
    def _folded(self) -> list[str]:
        return [text.casefold() for text in self._texts]


@remembered
def _name(heading: str) -> str:
    """A heading as `_words` writes it, without text in parentheses; "" if that is too short."""
    name = _words(_PARENTHESES.sub(" ", heading)) if heading else ""
    letters = sum(map(len, name.split())) + len(_IDEOGRAPH.findall(name))
    return name if letters >= _LEAST_LETTERS else ""


@remembered
def _words(text: str) -> str:
    """The words in lower case, a space around each."""
    # Most text is ASCII, and that way takes a fifth of the time.
    words = text.lower().translate(_BLANKS).split() if text.isascii() else _WORD.findall(text.casefold())
    return f" {' '.join(words)} "
