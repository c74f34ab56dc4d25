"""Passages that better ones name: what a strong passage mentions by its heading is worth a look."""

import re
from collections.abc import Mapping, Sequence
from math import log

from retrieval.types import Chunk

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
    ranking: Sequence[tuple[int, float]], chunks: Mapping[int, Chunk], *, weight: float = WEIGHT
) -> list[tuple[int, float]]:
    """Raise candidates whose heading occurs in the text of the best ones.

    A question that takes two passages often shares its words with the first alone; the second is
    under the name of what connects them, the bridge (Yang et al. 2018, "HotpotQA", EMNLP), and the
    first says that name. A mention counts by the square of the mentioning passage's score beside the best,
    and less the more candidates say the same name, nothing when all do. Of the passages under one
    name the best is raised.

    Args:
        ranking: (key, score) best first, scores in [0, 1].
        chunks: By key; those of the first `CANDIDATES` suffice, a key that is not there stays where it is.
        weight: What a mention by the best passage adds, as a share of that one's score.

    Returns:
        Every key of `ranking`, best first, ties by key ascending; the very same where nobody mentions
        anybody. Scores stay in [0, 1]: divided by the best where that went beyond 1.
    """
    candidates = [(key, score, chunks[key]) for key, score in ranking[:CANDIDATES] if key in chunks]
    if len(candidates) < 2 or candidates[0][1] <= 0.0:
        return list(ranking)
    best = candidates[0][1]
    names = [_name(chunk) for _, _, chunk in candidates]
    texts = [_words(chunk.text) for _, _, chunk in candidates]
    vocabularies = [frozenset(text.split()) for text in texts]
    lifts: dict[int, float] = {}
    for name in dict.fromkeys(filter(None, names)):
        first = name.split(maxsplit=1)[0]
        saying = [
            row for row, text in enumerate(texts) if first in vocabularies[row] and name in text and names[row] != name
        ]
        if saying and saying[0] < SOURCES:
            rarity = max(0.0, 1.0 - log(len(saying)) / log(CANDIDATES))
            lifts[candidates[names.index(name)][0]] = best * rarity * (candidates[saying[0]][1] / best) ** 2
    if not lifts:
        return list(ranking)
    lifted = {key: score + weight * lifts.get(key, 0.0) for key, score in ranking}
    top = max(1.0, *lifted.values())
    return sorted(((key, score / top) for key, score in lifted.items()), key=lambda pair: (-pair[1], pair[0]))


def _name(chunk: Chunk) -> str:
    """The chunk's innermost heading as `_words` writes it, without what stands in parentheses; "" if too short."""
    if not chunk.heading_path:
        return ""
    name = _words(_PARENTHESES.sub(" ", chunk.heading_path[-1]))
    letters = sum(map(len, name.split())) + len(_IDEOGRAPH.findall(name))
    return name if letters >= _LEAST_LETTERS else ""


def _words(text: str) -> str:
    """The words in lower case, a space around each."""
    # Most text is ASCII, and that way takes a fifth of the time.
    words = text.lower().translate(_BLANKS).split() if text.isascii() else _WORD.findall(text.casefold())
    return f" {' '.join(words)} "
