"""Compares answers as SQuAD's evaluation does (Rajpurkar et al. 2016, arXiv:1606.05250; evaluate-v2.0.py).

Beyond it, for scripts it was not made for: their punctuation is dropped too, and a character of a
script written without spaces is a token (as in MLQA, Lewis et al. 2020, arXiv:1910.07475).
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

_OTHER_PUNCTUATION = "。、，．！？；：「」『』（）《》〈〉・“”‘’«»¿¡،؛؟।॥…"
_DROPPED = str.maketrans("", "", string.punctuation + _OTHER_PUNCTUATION)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
# Thai, Lao, Tibetan, Burmese, Khmer, kana and Han: written without spaces between words.
_UNSPACED = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)


def normalised_tokens(text: str) -> list[str]:
    """Tokens of `text`: lower case, punctuation dropped, articles dropped, split at white space, in that order."""
    bare = _ARTICLES.sub(" ", text.lower().translate(_DROPPED))
    return _UNSPACED.sub(r" \1 ", bare).split()


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """1 when the prediction equals one of the answers after normalising, else 0."""
    predicted = normalised_tokens(prediction)
    return float(any(predicted == normalised_tokens(answer) for answer in answers))


def f1(prediction: str, answers: Iterable[str]) -> float:
    """Best harmonic mean of token precision and recall over the answers; two empty ones agree."""
    predicted = normalised_tokens(prediction)
    return max((_f1(predicted, normalised_tokens(answer)) for answer in answers), default=0.0)


def longest_common_f1(prediction: str, answers: Iterable[str]) -> float:
    """ROUGE-L (Lin 2004, ACL W04-1013): as `f1`, of the longest common subsequence of tokens: order counts."""
    predicted = normalised_tokens(prediction)
    return max((_longest_common_f1(predicted, normalised_tokens(answer)) for answer in answers), default=0.0)


def contains(text: str, answer: str) -> bool:
    """Whether the text contains the answer's tokens as one consecutive sequence."""
    wanted = normalised_tokens(answer)
    if not wanted:  # an article or a mark alone: not normalised
        return answer.strip().lower() in text.lower()
    return f" {' '.join(wanted)} " in f" {' '.join(normalised_tokens(text))} "


def contains_any(text: str, answers: Iterable[str]) -> bool:
    """Whether the text contains one of the answers."""
    return any(contains(text, answer) for answer in answers)


def token_recall(text: str, answers: Iterable[str]) -> float:
    """Best share of an answer's distinct tokens that occur in the text."""
    there = set(normalised_tokens(text))
    wanted = [set(normalised_tokens(answer)) for answer in answers]
    return max((len(tokens & there) / len(tokens) for tokens in wanted if tokens), default=0.0)


def _f1(predicted: Sequence[str], wanted: Sequence[str]) -> float:
    if not predicted or not wanted:
        return float(predicted == wanted)
    return _harmonic((Counter(predicted) & Counter(wanted)).total(), predicted, wanted)


def _longest_common_f1(predicted: Sequence[str], wanted: Sequence[str]) -> float:
    if not predicted or not wanted:
        return float(predicted == wanted)
    lengths = [0] * (len(wanted) + 1)  # of the longest common subsequence with each beginning of `wanted`
    for token in predicted:
        diagonal = 0
        for at, other in enumerate(wanted, start=1):
            above = lengths[at]
            lengths[at] = diagonal + 1 if token == other else max(above, lengths[at - 1])
            diagonal = above
    return _harmonic(lengths[-1], predicted, wanted)


def _harmonic(shared: int, predicted: Sequence[str], wanted: Sequence[str]) -> float:
    """The harmonic mean of the shares of `shared` tokens in both."""
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)
