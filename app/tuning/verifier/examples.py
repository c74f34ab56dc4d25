"""Labelled claims to calibrate on, made from question sets and from SciFact's rationales.

Made claims are of the kinds a small generator gets wrong: a true answer beside the wrong passage, a wrong
answer from the right passage, half of one sentence joined to half of another, a sentence turned round.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.tuning.collection import Collection, Question, read_collection
from retrieval.sentences import sentence_spans

_FEWEST_WORDS = 8  # of a sentence worth changing
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|can|could|will|would|did|does|may|must)\b(?! not)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A claim, the source it cites and whether that supports it.

    `kind` says how it was made; `apart` ones measure instead of training, by the title of their document.
    """

    dataset: str
    kind: str
    question: str
    claim: str
    source: str
    heading: str
    supported: bool
    apart: bool


def scifact_examples(folder: Path, *, share: float) -> Iterator[Example]:
    """Claims of SciFact (Wadden et al. 2020, arXiv:2004.14974) beside rationales, or an abstract that says nothing.

    Raises:
        OSError, ValueError: The folder is not the set.
    """
    collection = read_collection(folder)
    labels: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for row in _rows(folder / "spans.jsonl"):
        labels.setdefault((row["query_id"], row["corpus_id"]), (row["label"], []))[1].append(row["text"])
    for question in collection.questions:
        for document in sorted(question.relevant):
            label, rationales = labels.get((question.id, document), ("NONE", [""]))
            for text in rationales:
                yield Example(
                    dataset=collection.name,
                    kind=label.lower(),
                    question="",
                    claim=question.text,
                    source=text or _body(collection, document),
                    heading=collection.titles[document],
                    supported=label == "SUPPORT",
                    apart=collection.held_apart(document, share=share),
                )


def answer_examples(folder: Path, *, share: float, most: int, seed: int = 0) -> Iterator[Example]:
    """Answers of a question set beside the passage they come from, and the ways they go wrong.

    Args:
        folder: A question set whose answers are spans of their passages, or with a `long_answer`.
        share: Of documents that are held apart.
        most: Questions used.
        seed: Of every choice.

    Raises:
        OSError, ValueError: The folder is no question set.
    """
    collection = read_collection(folder)
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    long_answers = _long_answers(folder)
    by_document: dict[str, list[Question]] = {}
    for question in collection.questions:
        by_document.setdefault(min(question.relevant), []).append(question)
    ids = sorted(by_document)
    for question in rng.sample(collection.questions, min(most, len(collection.questions))):
        document = min(question.relevant)
        other = rng.choice([another for another in rng.sample(ids, min(3, len(ids))) if another != document] or ids)
        for kind, claim, source, supported in _variants(
            collection, question, document, other, by_document[document], long_answers.get(question.id, ""), rng
        ):
            yield Example(
                dataset=collection.name,
                kind=kind,
                question=question.text,
                claim=claim,
                source=_body(collection, source),
                heading=collection.titles[source],
                supported=supported,
                apart=collection.held_apart(document, share=share),
            )


def _variants(
    collection: Collection,
    question: Question,
    document: str,
    other: str,
    siblings: Sequence[Question],
    long_answer: str,
    rng: random.Random,
) -> Iterator[tuple[str, str, str, bool]]:
    """Yields kind, claim, document and label of the examples made from one question."""
    text = _body(collection, document)
    if long_answer:
        first = long_answer[slice(*sentence_spans(long_answer)[0])]
        yield "paraphrase", first, document, True
        yield "swapped", first, other, False
        if (turned := _negated(first)) is not None:
            yield "negated", turned, document, False
        return
    answer = min((answer for answer in question.answers if answer in text), key=len, default="")
    if not answer or other == document:
        return
    yield "answer", answer, document, True
    if answer.casefold() not in _body(collection, other).casefold():
        yield "swapped", answer, other, False
    wrong = _wrong_answer(question, siblings, text, rng)
    if wrong:
        yield "wrong", wrong, document, False
    yield from _sentences(collection, document, other, answer, rng)


def _sentences(
    collection: Collection, document: str, other: str, answer: str, rng: random.Random
) -> Iterator[tuple[str, str, str, bool]]:
    text = _body(collection, document)
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    long = [sentence for sentence in sentences if len(sentence.split()) >= _FEWEST_WORDS]
    holding = next((sentence for sentence in long if answer in sentence), None)
    if holding is None:
        return
    yield "quote", holding, document, True
    yield "sentence", _shortened(holding, answer, rng), document, True
    yield "swapped sentence", _shortened(holding, answer, rng), other, False
    others = [sentence for sentence in long if sentence != holding]
    if others:
        yield "joined", _joined(holding, rng.choice(others)), document, False
    for kind, changed in (
        ("negated", _negated(holding)),
        ("number", _renumbered(holding, rng)),
        ("name", _renamed(holding, collection.documents[other], rng)),
    ):
        if changed is not None:
            yield kind, changed, document, False


def _wrong_answer(question: Question, siblings: Sequence[Question], text: str, rng: random.Random) -> str:
    """An answer to another question about the passage, else a name or a number of the passage; "" if none."""
    right = {answer.casefold() for answer in question.answers}

    def differs(candidate: str) -> bool:
        low = candidate.casefold()
        return all(low not in answer and answer not in low for answer in right)

    candidates = [answer for other in siblings for answer in other.answers if answer in text and differs(answer)]
    if not candidates:
        number = any(_NUMBER.search(answer) for answer in question.answers)
        candidates = [found for found in (_NUMBER if number else _NAME).findall(text) if differs(found)]
    return rng.choice(candidates) if candidates else ""


def _shortened(sentence: str, answer: str, rng: random.Random) -> str:
    """Drops a clause or a few words from the sentence and keeps the answer, like a model's paraphrase."""
    clauses = re.split(r"(?<=,) ", sentence)
    if len(clauses) > 1 and rng.random() < 0.5:
        for part in (" ".join(clauses[:-1]).rstrip(","), " ".join(clauses[1:])):
            if answer in part and len(part.split()) >= _FEWEST_WORDS:
                return part
    keep = set(answer.split())
    words = [word for word in sentence.split() if word in keep or rng.random() > 0.15]
    return " ".join(words)


def _joined(sentence: str, other: str) -> str:
    one, two = sentence.split(), other.split()
    return " ".join(one[: len(one) // 2] + two[len(two) // 2 :])


def _negated(sentence: str) -> str | None:
    return _AUXILIARY.sub(r"\1 not", sentence, count=1) if _AUXILIARY.search(sentence) else None


def _renumbered(sentence: str, rng: random.Random) -> str | None:
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    match = rng.choice(found)
    digits = "".join(str((int(char) + rng.randint(1, 8)) % 10) if char.isdigit() else char for char in match.group())
    return sentence[: match.start()] + digits + sentence[match.end() :]


def _renamed(sentence: str, other: str, rng: random.Random) -> str | None:
    names, strangers = _NAME.findall(sentence), [name for name in _NAME.findall(other) if name not in sentence]
    return sentence.replace(rng.choice(names), rng.choice(strangers)) if names and strangers else None


def _body(collection: Collection, document: str) -> str:
    """A document's text without its title."""
    text, title = collection.documents[document], collection.titles[document]
    return text[len(title) + 1 :] if title else text


def _long_answers(folder: Path) -> dict[str, str]:
    found = {}
    for row in _rows(folder / "queries.jsonl"):
        if answer := (row.get("metadata") or {}).get("long_answer"):
            found[row["_id"]] = answer
    return found


def _rows(file: Path) -> Iterator[Any]:
    with file.open(encoding="utf-8") as lines:  # not splitlines: texts hold other line breaks
        yield from (json.loads(line) for line in lines if line.strip())
