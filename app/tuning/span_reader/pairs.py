"""Training pairs of the span reader: questions with answering passages, and with passages that do not answer."""

import random
import re
from collections.abc import Mapping, Sequence

from app.evaluation.squad import contains_any
from app.tuning.adapter.examples import Example, asked, perturbed
from app.tuning.adapter.packs import Corpus
from app.tuning.span_reader.training import Pair, Target
from retrieval.sentences import sentence_spans

_NEAR, _PERTURBED = 0.45, 0.45  # questions that are also asked where nothing answers, in the two ways
_TITLED = 0.5
_LONGEST = 1100  # characters, about what a window holds
_CLOSEST = 6
_ALIKE = 40  # batches that are sorted by length together


def pairs_of(corpus: Corpus, *, random_: random.Random) -> list[Pair]:
    """Pairs each example with its passage; most also with a question or passage that makes it unanswerable.

    Passages too long for a window are cut at sentences around the answer; half begin with their title.
    """
    found = []
    evidence = _evidence(corpus)
    for example in corpus.examples:
        if not example.statements:
            continue
        statement = example.statements[0]
        text = corpus.text(statement.passage)
        at = _place(text, example, evidence)
        if at is None:
            continue
        found.append(_pair(corpus, statement.passage, example, (at, at + len(statement.text)), random_))
        chance = random_.random()
        if chance < _NEAR:
            near = _neighbour(corpus, example, statement.passage, random_)
            if near is not None:
                found.append(_pair(corpus, near, example, None, random_))
        elif chance < _NEAR + _PERTURBED:
            others = [corpus.text(key) for key in corpus.siblings(statement.passage)[:_CLOSEST]]
            others = others or [corpus.text(random_.choice(corpus.keys))]
            changed = perturbed(example, text, random_=random_, others=others)
            if changed is not None:
                around = (at, at + len(statement.text))
                found.append(_pair(corpus, statement.passage, changed, around, random_, answered=False))
    return found


def _evidence(corpus: Corpus) -> dict[tuple[str, str], list[int]]:
    """The start offset of gold evidence by question and passage."""
    found: dict[tuple[str, str], list[int]] = {}
    for key, spans in corpus.question_set.spans.items():
        question = asked(corpus.question_set.questions[key].text)
        for span in spans:
            found.setdefault((question, span.document_id), []).append(span.start)
    return found


def _place(text: str, example: Example, evidence: Mapping[tuple[str, str], Sequence[int]]) -> int | None:
    """The answer's offset in a passage: at its gold evidence, else first as whole words, else first; None if nowhere.

    Yes and no have no span: a chance match must not be pointed at.
    """
    said, passage = example.statements[0].text, example.statements[0].passage
    if said.lower() in ("", "yes", "no"):
        return None
    for at in evidence.get((example.question, passage), ()):
        if text.startswith(said, at):
            return at
    opens, closes = (r"\b" if mark.isalnum() else "" for mark in (said[0], said[-1]))
    whole = re.search(f"{opens}{re.escape(said)}{closes}", text)
    at = text.find(said) if whole is None else whole.start()
    return at if at >= 0 else None


def _neighbour(corpus: Corpus, example: Example, passage: str, random_: random.Random) -> str | None:
    """A hard negative from the same article or a search; None if all candidates answer."""
    siblings = corpus.siblings(passage)
    found = siblings if siblings and random_.random() < 0.5 else corpus.near(example.question, without=[passage])
    silent = [key for key in found[: 2 * _CLOSEST] if not contains_any(corpus.text(key), example.golds)]
    return random_.choice(silent[:_CLOSEST]) if silent else None


def _pair(
    corpus: Corpus,
    passage: str,
    example: Example,
    around: tuple[int, int] | None,
    random_: random.Random,
    *,
    answered: bool = True,
) -> Pair:
    text = corpus.text(passage)
    start, end = _cut(text, around, random_)
    kept = text[start:end]
    title = corpus.question_set.documents[passage].title
    before = f"{title}\n" if title and random_.random() < _TITLED else ""
    if around is None or not answered:
        return Pair(example.question, before + kept, None)
    moved = len(before) - start
    return Pair(example.question, before + kept, (around[0] + moved, around[1] + moved))


def _cut(text: str, around: tuple[int, int] | None, random_: random.Random) -> tuple[int, int]:
    """Whole sentences of at most `_LONGEST` characters around `around`, with a random start."""
    if len(text) <= _LONGEST:
        return 0, len(text)
    sentences = sentence_spans(text)
    first, last = around or (0, 1)
    whole = next((end for _, end in sentences if end >= last), last)  # where the answer's own sentence ends
    begins = [start for start, _ in sentences if start <= first and whole - start <= _LONGEST] or [first]
    start = random_.choice(begins)
    ends = [end for _, end in sentences if end >= last and end - start <= _LONGEST]
    return start, max(ends, default=max(last, min(len(text), start + _LONGEST)))


def batches(targets: Sequence[Target], *, size: int, random_: random.Random) -> list[list[Target]]:
    """Batches all targets once, grouped by length to reduce padding; an incomplete last batch is dropped."""
    order = list(targets)
    random_.shuffle(order)
    stretch = _ALIKE * size
    found = []
    for at in range(0, len(order), stretch):
        alike = sorted(order[at : at + stretch], key=lambda target: len(target.window.ids))
        found += [alike[first : first + size] for first in range(0, len(alike) - size + 1, size)]
    random_.shuffle(found)
    return found
