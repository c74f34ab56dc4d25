"""The training mixture of the second reader: the sets, their weights and their order.

Nothing here is seen twice by chance: a set's questions are gone through one after the other, in a new order each time.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from app.evaluation.dataset import read_question_set
from app.evaluation.types import GoldSpan, QuestionSet, SetQuestion
from app.tuning.adapter.examples import Example, Statement, asked, typical

HELD_BACK = 0.05  # of the documents of every set, by the hash `app.tuning.adapter.run.is_held_back` goes by
NEVER_TRAINED = frozenset(
    {"cuad-clauses", "squad2-dev", "xquad", "anthropic-docs", "chroma-chunking", "climate-fever-mini", "cranfield"}
)
"""Sets that measure; the first of them shows a kind of document that was never seen."""
_RULED_SHARE = 0.1  # of a pass, at most, for questions written by rule


class Company(StrEnum):
    """Which passages a question is also asked of: of its document, of its set, or of other sets only.

    The last is for questions without a subject: "What was the total?" is answered by any receipt.
    """

    DOCUMENT = "document"
    SET = "set"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a set is used.

    `weight` is how often one of its questions is used for one of weight 1. Its gold spans are alternatives, or
    with `parts` they are the answer together. `pointed` is false where spans are evidence but no answer: they train
    only the tags. With `repeated` every occurrence in the passage is right. `ruled` questions are written
    by rules.
    """

    weight: float
    company: Company
    parts: bool = False
    pointed: bool = True
    repeated: bool = False
    ruled: bool = False


RULES: Mapping[str, Rules] = {
    "squad-train-44": Rules(weight=3, company=Company.DOCUMENT),
    "squadshift-new-wiki": Rules(weight=2, company=Company.DOCUMENT),
    "nq-gold": Rules(weight=2, company=Company.SET, repeated=True),
    "wtq-lookups": Rules(weight=2, company=Company.SET),
    "ait-qa": Rules(weight=2, company=Company.FOREIGN),
    "tatqa-test-gold": Rules(weight=2, company=Company.DOCUMENT, parts=True),
    "tatqa-dev": Rules(weight=2, company=Company.DOCUMENT, parts=True),
    "sleepqa": Rules(weight=2, company=Company.SET),
    "selqa": Rules(weight=2, company=Company.SET, parts=True),
    "quoref-contrast": Rules(weight=1.5, company=Company.DOCUMENT),
    "squadshift-amazon": Rules(weight=1, company=Company.FOREIGN),
    "squadshift-reddit": Rules(weight=1, company=Company.FOREIGN),
    "fairytaleqa": Rules(weight=1, company=Company.DOCUMENT),
    "fetaqa": Rules(weight=1, company=Company.SET, parts=True, pointed=False),
    "qamr": Rules(weight=0.5, company=Company.FOREIGN),
    "synthetic-forms": Rules(weight=1, company=Company.FOREIGN, ruled=True),
}
UNSEEN = Rules(weight=0, company=Company.DOCUMENT)
"""For a set that does not train."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a passage, and the characters of it that answer.

    `spans` are all that count as right, `evidence` those of them that are to be tagged.
    """

    example: Example
    passage: str
    spans: tuple[tuple[int, int], ...]
    evidence: tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Source:
    """A set with the questions asked of it.

    `written` are questions by the passage that was written not to answer them; `document_of` says by passage which
    document it is part of.
    """

    question_set: QuestionSet
    rules: Rules
    questions: Sequence[Asked]
    written: Mapping[str, Sequence[str]]
    document_of: Mapping[str, str]
    keys: Sequence[str] = field(default=())

    @property
    def name(self) -> str:
        """The set's name."""
        return self.question_set.name

    def text(self, key: str) -> str:
        """A passage's text."""
        return self.question_set.documents[key].text


def sources(data: Path, *, held_back: bool = False, names: Sequence[str] = tuple(RULES)) -> list[Source]:
    """The training sets under `data` without the documents held back, or with only those.

    Args:
        data: The folder with the sets' folders, or with a folder `train` that has them.
        held_back: Whether to read the held-out documents instead.
        names: Which sets, in this order; one of `NEVER_TRAINED` is read whole, as held back.

    Raises:
        ValueError: A set that measures was named to train.
        QuestionSetMalformed: A set is missing or wrong.
    """
    wrong = sorted(NEVER_TRAINED & set(names))
    if wrong and not held_back:
        raise ValueError(f"these sets are for measuring and never train: {', '.join(wrong)}")
    return [source_of(folder_of(data, name), held_back=held_back) for name in names]


def source_of(folder: Path, *, held_back: bool) -> Source:
    """One set, as `sources` reads it.

    Raises:
        QuestionSetMalformed: The set is missing or wrong.
    """
    question_set = read_question_set(folder)
    rules = RULES.get(question_set.name, UNSEEN)
    document_of = documents_of(folder, question_set)

    def counts(passage: str) -> bool:
        return is_held_back(question_set.name, document_of[passage]) == held_back

    found, written = [], dict[str, list[str]]()
    for question in question_set.questions.values():
        if question.unanswerable:
            context = question.metadata.get("context_id", "")
            if context in document_of and counts(context):
                written.setdefault(context, []).append(asked(question.text))
            continue
        one = _asked(question_set, question, rules)
        if one is not None and counts(one.passage):
            found.append(one)
    keys = [key for key, document in question_set.documents.items() if document.text.strip() and counts(key)]
    return Source(question_set, rules, found, written, document_of, keys)


def is_held_back(name: str, document: str) -> bool:
    """Whether a document of the set `name` never trains."""
    if name in NEVER_TRAINED:
        return True
    return hashlib.sha256(f"{name}\0{document}".encode()).digest()[0] / 256 < HELD_BACK


def shares(found: Sequence[Source]) -> list[float]:
    """Which part of a pass each set is: by weight and number of questions, those written by rule at most a tenth."""
    sizes = [source.rules.weight * len(source.questions) for source in found]
    free = sum(size for source, size in zip(found, sizes, strict=True) if not source.rules.ruled)
    ruled = sum(sizes) - free
    allowed = min(ruled, free * _RULED_SHARE / (1 - _RULED_SHARE)) if free else ruled
    sizes = [
        size * allowed / ruled if source.rules.ruled and ruled else size
        for source, size in zip(found, sizes, strict=True)
    ]
    return [size / sum(sizes) for size in sizes]


def order(found: Sequence[Source], *, passes: float, seed: int) -> list[tuple[int, int]]:
    """All that is asked in training: (place of the source, place of its question), one after the other.

    A pass asks as many questions as the sets that are not written by rule have; each set's part of it is its share.
    """
    size = sum(len(source.questions) for source in found if not source.rules.ruled) or sum(
        len(source.questions) for source in found
    )
    drawn = []
    for place, (source, share) in enumerate(zip(found, shares(found), strict=True)):
        endless = _endless(len(source.questions), random.Random(f"{seed} {source.name}"))  # noqa: S311
        drawn += [(place, next(endless)) for _ in range(round(passes * size * share))]
    # Every set's questions keep their own order: repeats come after all others.
    random_ = random.Random(f"{seed} order")  # noqa: S311  # nothing secret is drawn
    queues = [iter([one for one in drawn if one[0] == place]) for place in range(len(found))]
    places = [place for place, _ in drawn]
    random_.shuffle(places)
    return [next(queues[place]) for place in places]


def _endless(count: int, random_: random.Random) -> Iterator[int]:
    while True:
        yield from random_.sample(range(count), count)


def folder_of(data: Path, name: str) -> Path:
    """The folder of a set: in the folder `train` of `data`, or in `data`."""
    nested = data / "train" / name
    return nested if nested.is_dir() else data / name


def documents_of(folder: Path, question_set: QuestionSet) -> dict[str, str]:
    """The document of each passage: its title, the block given by the set, or itself."""
    blocks = {}
    with (folder / "corpus.jsonl").open(encoding="utf-8") as file:
        for line in file:
            if '"block"' in line:
                row = json.loads(line)
                blocks[row["_id"]] = str(row.get("metadata", {}).get("block", ""))
    return {key: one.title or blocks.get(key, "") or key for key, one in question_set.documents.items()}


def _asked(question_set: QuestionSet, question: SetQuestion, rules: Rules) -> Asked | None:
    """None where no passage contains the answer literally."""
    gold = question_set.spans.get(question.id, ())
    if not question_set.spans:
        gold = _found(question_set, question)
    if not gold:
        return None
    passages = [span.document_id for span in gold]
    passage = max(sorted(set(passages)), key=passages.count)
    own = [span for span in gold if span.document_id == passage]
    said = typical([span.text for span in own])
    main = own if rules.parts else [next(span for span in own if span.text == said)]
    needs = (passage, *sorted((question_set.relevant(question.id) | set(passages)) - {passage}))
    golds = tuple(dict.fromkeys((*question.answers, *(span.text for span in own))))
    statement = Statement(said.strip(), passage)
    places = {(span.start, span.end) for span in own}
    if rules.repeated:
        text = question_set.documents[passage].text
        places |= {place for span in own for place in occurrences(text, span.text)}
    return Asked(
        Example(asked(question.text), (statement,), needs, golds, pointed=statement),
        passage,
        tuple(sorted(places)),
        tuple(sorted({(span.start, span.end) for span in main})),
    )


def _found(question_set: QuestionSet, question: SetQuestion) -> tuple[GoldSpan, ...]:
    """Answers that occur just once in the passages judged right; numbers of one digit are left out."""
    found = []
    for answer in question.answers:
        places = [
            GoldSpan(key, start, end, answer)
            for key in sorted(question_set.relevant(question.id))
            for start, end in occurrences(question_set.documents[key].text, answer)
        ]
        if len(places) == 1 and len(answer.strip()) > 1 and answer.lower() not in ("yes", "no"):
            found += places
    return tuple(found)


def occurrences(text: str, said: str) -> list[tuple[int, int]]:
    """The places of `said` in `text`, as whole words."""
    if not said.strip():
        return []
    opens, closes = (r"(?<!\w)" if said[0].isalnum() else "", r"(?!\w)" if said[-1].isalnum() else "")
    return [match.span() for match in re.finditer(f"{opens}{re.escape(said)}{closes}", text)]
