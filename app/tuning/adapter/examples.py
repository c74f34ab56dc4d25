"""Training examples of the adapter: questions over passages, with the statements that answer them.

An example without statements is answered "I don't know.". So is one whose passage is not among the
sources shown, which is how most refusals come about (`app.tuning.adapter.packs`).
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.evaluation.squad import f1
from app.evaluation.types import QuestionSet
from retrieval.sentences import sentence_spans

_CLAIM = "Is it true that {}?"
_ABOUT = (
    "What do the documents say about {}?",
    "Tell me about {}.",
    "Describe {}.",
    "What is known about {}?",
    "Explain {}.",
)
_LONGEST_STATEMENT = 60  # words
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'’-]+(?: (?:of |the |and )?[A-Z][\w'’-]+)*")
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
# Both directions; the first that occurs is turned round.
_OPPOSITES = tuple(
    pair
    for a, b in (
        ("first", "last"), ("largest", "smallest"), ("oldest", "youngest"), ("before", "after"), ("north", "south"),
        ("east", "west"), ("northern", "southern"), ("eastern", "western"), ("highest", "lowest"), ("most", "least"),
        ("increase", "decrease"), ("won", "lost"), ("win", "lose"), ("early", "late"), ("started", "ended"),
        ("begin", "end"), ("began", "ended"), ("founded", "dissolved"), ("built", "demolished"), ("male", "female"),
        ("men", "women"), ("father", "mother"), ("son", "daughter"), ("allowed", "forbidden"), ("higher", "lower"),
        ("larger", "smaller"), ("longest", "shortest"), ("major", "minor"), ("enter", "leave"), ("rich", "poor"),
        ("married", "divorced"), ("support", "oppose"), ("supported", "opposed"), ("inside", "outside"),
        ("positive", "negative"), ("strong", "weak"), ("private", "public"), ("winter", "summer"), ("old", "new"),
    )
    for pair in ((a, b), (b, a))
)  # fmt: skip
_NEGATED = re.compile(r"\b(was|were|is|are|did|does|do|has|have|had|can|could|would)\b(?! (?:not|n't))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of an answer and its source passage."""

    text: str
    passage: str


@dataclass(frozen=True, slots=True)
class Example:
    """A question, its statements, the passages they need, and the accepted answers.

    `pointed` are the words a reader would point at, the answer or what looks like it; None where it would not.
    """

    question: str
    statements: tuple[Statement, ...]
    needs: tuple[str, ...]
    golds: tuple[str, ...] = ()
    pointed: Statement | None = None


def spans(question_set: QuestionSet) -> list[Example]:
    """Examples with short answers copied word for word from their passage."""
    found = []
    for question in question_set.questions.values():
        answer = typical(question.answers)
        needs = tuple(sorted(question_set.relevant(question.id)))
        passage = next((key for key in needs if answer and answer in _text(question_set, key)), None)
        if passage is None or question.unanswerable or len(answer.split()) > _LONGEST_STATEMENT:
            continue
        said = Statement(answer.strip(), passage)
        found.append(Example(asked(question.text), (said,), needs, question.answers, pointed=said))
    return found


def yes_or_no(question_set: QuestionSet) -> list[Example]:
    """Multi-hop questions answered yes or no; every passage of the chain is cited."""
    found = []
    for question in question_set.questions.values():
        passages = sorted(question_set.relevant(question.id))
        if question.answers and question.answers[0].lower() in ("yes", "no") and 1 < len(passages) <= 3:
            word = question.answers[0].lower()
            first, *rest = passages
            statements = (Statement(word, first), *(Statement("", passage) for passage in rest))
            found.append(Example(asked(question.text), statements, tuple(passages)))
    return found


def findings(question_set: QuestionSet) -> list[Example]:
    """Questions about a study, answered by its conclusion: one or two sentences, each cited."""
    found = []
    for question in question_set.questions.values():
        passages = sorted(question_set.relevant(question.id))
        sentences = _sentences(question.metadata.get("long_answer", ""))[:2]
        if passages and sentences:
            said = tuple(Statement(text.rstrip("."), passages[0]) for text in sentences)
            found.append(Example(asked(question.text), said, tuple(passages)))
    return found


def claims(question_set: QuestionSet) -> list[Example]:
    """Claims that a study supports or contradicts: yes or no, and its sentence."""
    found = []
    for question in question_set.questions.values():
        gold = question_set.spans.get(question.id, ())
        label = question.metadata.get("label")
        if not gold or label not in ("SUPPORT", "CONTRADICT"):
            continue
        word = "Yes" if label == "SUPPORT" else "No"
        text = " ".join(gold[0].text.split())
        if len(text.split()) <= _LONGEST_STATEMENT:
            claim = question.text.strip().rstrip(".")
            said = Statement(f"{word}: {text.rstrip('.')}", gold[0].document_id)
            found.append(Example(_CLAIM.format(claim), (said,), (said.passage,)))
    return found


def descriptions(question_set: QuestionSet, *, random_: random.Random, share: float) -> list[Example]:
    """Open questions about a name, answered by the first sentences that speak of it."""
    found = []
    for key in sorted(question_set.documents):
        if random_.random() >= share:
            continue
        sentences = [text for text in _sentences(_text(question_set, key)) if len(text.split()) >= 6]
        names = Counter(name for text in sentences for name in set(_NAME.findall(text)))
        often = sorted(name for name, count in names.items() if 2 <= count <= 4)
        if not often:
            continue
        name = random_.choice(often)
        said = [text for text in sentences if name in text][:2]
        statements = tuple(Statement(text.rstrip("."), key) for text in said)
        found.append(Example(random_.choice(_ABOUT).format(name), statements, (key,)))
    return found


def twofold(first: Example, second: Example) -> Example:
    """Combines two questions into one, answered one after the other."""
    follow = second.question[0].lower() + second.question[1:]
    needs = tuple(dict.fromkeys(first.needs + second.needs))
    question = f"{first.question.rstrip('?')}, and {follow}"
    return Example(question, first.statements + second.statements, needs, pointed=first.pointed)


def perturbed(example: Example, passage: str, *, random_: random.Random, others: Sequence[str]) -> Example | None:
    """A question its passage no longer answers, though it looks as if it did (after Rajpurkar et al. 2018, SQuAD 2.0).

    One name, year or number of the question that stands in the passage is exchanged for another's,
    a word for its opposite, or the question is negated. What was the answer is what a reader would
    still point at. None when the question gives no handle.
    """
    ways = [_swapped_name, _swapped_number, _opposite, _negated]
    random_.shuffle(ways)
    # Negation is the cheapest trick and must not become the only one.
    ways.sort(key=lambda way: way is _negated)
    for way in ways:
        changed = way(example.question, passage, random_, others)
        if changed is not None and changed != example.question:
            return replace(example, question=changed, statements=(), golds=())
    return None


def typical(answers: Sequence[str]) -> str:
    """The answer most similar to the others; the first of equals."""
    if not answers:
        return ""
    return max(answers, key=lambda answer: sum(f1(answer, [other]) for other in answers))


def asked(question: str) -> str:
    """A trimmed question; its ending is unchanged."""
    return " ".join(question.split())


def _swapped_name(question: str, passage: str, random_: random.Random, others: Sequence[str]) -> str | None:
    names = [name for name in _NAME.findall(question) if name in passage]
    choices = sorted({name for text in others for name in _NAME.findall(text) if name not in passage})
    if not names or not choices:
        return None
    name = random_.choice(names)
    alike = [choice for choice in choices if len(choice.split()) == len(name.split())] or choices
    return question.replace(name, random_.choice(alike), 1)


def _swapped_number(question: str, passage: str, random_: random.Random, others: Sequence[str]) -> str | None:
    del others
    years = _YEAR.findall(question)
    if years:
        year = random_.choice(years)
        moved = str(int(year) + random_.choice((-30, -12, -7, -3, 4, 8, 15)))
        return question.replace(year, moved, 1) if moved not in passage else None
    numbers = _NUMBER.findall(question)
    if not numbers:
        return None
    number = random_.choice(numbers)
    moved = str(random_.choice((2, 3, 5, 7, 12, 40, 90, 150, 600)))
    return question.replace(number, moved, 1) if moved not in passage else None


def _opposite(question: str, passage: str, random_: random.Random, others: Sequence[str]) -> str | None:
    del others
    pairs = list(_OPPOSITES)
    random_.shuffle(pairs)
    for word, opposite in pairs:
        if re.search(rf"\b{word}\b", question) and not re.search(rf"\b{opposite}\b", passage):
            return re.sub(rf"\b{word}\b", opposite, question, count=1)
    return None


def _negated(question: str, passage: str, random_: random.Random, others: Sequence[str]) -> str | None:
    del passage, others
    if random_.random() < 0.6 or not question.lower().startswith(("what", "who", "which", "where", "when")):
        return None
    changed = _NEGATED.sub(lambda match: f"{match.group()} not", question, count=1)
    return changed if changed != question else None


def _sentences(text: str) -> list[str]:
    return [
        sentence
        for start, end in sentence_spans(text)
        if len((sentence := " ".join(text[start:end].split())).split()) <= _LONGEST_STATEMENT
    ]


def _text(question_set: QuestionSet, key: str) -> str:
    return question_set.documents[key].text
