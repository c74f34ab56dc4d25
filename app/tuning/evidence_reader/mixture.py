"""The training mixture of the second reader: the sets, their weights and their order.

Nothing here is seen twice by chance: a set's questions are gone through one after the other, in a new order each time.
"""

import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from app.evaluation.dataset import read_question_set
from app.evaluation.types import GoldSpan, QuestionSet, SetQuestion
from app.tuning.adapter.examples import Example, Statement, asked, typical

HELD_BACK = 0.05  # of the documents of every set, by the hash `app.tuning.adapter.run.is_held_back` goes by
NEVER_TRAINED = frozenset(
    {"cuad-clauses", "squad2-dev", "xquad", "anthropic-docs", "chroma-chunking", "climate-fever-mini", "cranfield"}
)
"""Sets that measure; the first of them shows a kind of document that was never seen."""
NEVER_ALONE = frozenset({"condaqa"})
"""Sets with so few answers that by themselves they teach that their kind of question has none."""
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

    `lacking` is the weight of its unanswerable questions, each of which leads a group of its own; at 0 they are only
    asked beside an answerable question of their passage. `beside` names sets whose unanswerable questions are about
    this set's passages, by its ids: they are read with it.
    """

    weight: float
    company: Company
    lacking: float = 0.0
    beside: tuple[str, ...] = ()
    parts: bool = False
    pointed: bool = True
    repeated: bool = False
    ruled: bool = False


RULES: Mapping[str, Rules] = {
    "squad-train-44": Rules(weight=3, company=Company.DOCUMENT, lacking=4, beside=("squad-train-44-unans",)),
    "squad2-train-unans": Rules(weight=3, company=Company.SET, lacking=4),
    "doqa-forums": Rules(weight=0.5, company=Company.SET, lacking=1.5),  # its answers begin and end loosely
    "tedq-talks": Rules(weight=0.5, company=Company.SET, lacking=0.5),
    "molweni-chat": Rules(weight=0.2, company=Company.SET, lacking=0.5),
    "condaqa": Rules(weight=0.2, company=Company.FOREIGN, lacking=0.2),  # its passages are edits of one another
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


@dataclass(frozen=True, slots=True)
class Lacking:
    """A question that people wrote, and the passage that looks as if it answered and does not."""

    question: str
    passage: str


@dataclass(eq=False)
class Source:
    """A set with the questions asked of it.

    `written` are questions by the passage that does not answer them; `document_of` says by passage which document it is
    part of. What can lead a group is numbered: first `questions`, then `lacking`.
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

    @cached_property
    def lacking(self) -> Sequence[Lacking]:
        """Every question of `written` with its passage."""
        return [Lacking(question, passage) for passage, asked_ in self.written.items() for question in asked_]

    def text(self, key: str) -> str:
        """A passage's text."""
        return self.question_set.documents[key].text

    def streams(self, *, pairs: bool = False) -> list[tuple[float, Sequence[int]]]:
        """What leads groups, by weight: the answerable questions, the unanswerable ones.

        Args:
            pairs: Only unanswerable questions whose passage answers another question.
        """
        first = len(self.questions)
        answered = {one.passage for one in self.questions}
        lacking = [first + at for at, one in enumerate(self.lacking) if not pairs or one.passage in answered]
        streams: list[tuple[float, Sequence[int]]] = [] if pairs else [(self.rules.weight, range(first))]
        if self.rules.lacking and self.questions:
            streams.append((self.rules.lacking, lacking))
        return streams


def sources(data: Path, *, held_back: bool = False, names: Sequence[str] = tuple(RULES)) -> list[Source]:
    """The training sets under `data` without the documents held back, or with only those.

    Args:
        data: The folder with the sets' folders, or with a folder `train` that has them.
        held_back: Whether to read the held-out documents instead.
        names: Which sets, in this order; one of `NEVER_TRAINED` is read whole, as held back.

    Raises:
        ValueError: A set that measures was named to train, or nothing but sets of `NEVER_ALONE`.
        QuestionSetMalformed: A set is missing or wrong, or one that is read with it.
    """
    wrong = sorted(NEVER_TRAINED & set(names))
    if wrong and not held_back:
        raise ValueError(f"these sets are for measuring and never train: {', '.join(wrong)}")
    if names and not held_back and NEVER_ALONE.issuperset(names):
        raise ValueError(f"these sets train only beside others: {', '.join(sorted(names))}")
    return [
        source_of(
            folder_of(data, name),
            held_back=held_back,
            beside=[folder_of(data, other) for other in RULES.get(name, UNSEEN).beside],
        )
        for name in names
    ]


def source_of(folder: Path, *, held_back: bool, beside: Sequence[Path] = ()) -> Source:
    """One set, as `sources` reads it.

    Args:
        folder: The set's.
        held_back: Whether to read the documents held back.
        beside: Folders of sets whose unanswerable questions are about this set's passages.

    Raises:
        QuestionSetMalformed: A set is missing or wrong.
    """
    question_set = read_question_set(folder)
    rules = RULES.get(question_set.name, UNSEEN)
    document_of = documents_of(folder, question_set)

    def counts(passage: str) -> bool:
        return is_held_back(question_set.name, document_of[passage]) == held_back

    found = []
    for question in question_set.questions.values():
        one = None if question.unanswerable else _asked(question_set, question, rules)
        if one is not None and counts(one.passage):
            found.append(one)
    written: dict[str, list[str]] = {}
    for other in (question_set, *map(read_question_set, beside)):
        for question in other.questions.values():
            context = question.metadata.get("context_id", "")
            if question.unanswerable and context in document_of and counts(context):
                said = written.setdefault(context, [])
                if (text := asked(question.text)) not in said:
                    said.append(text)
    keys = [key for key, document in question_set.documents.items() if document.text.strip() and counts(key)]
    return Source(question_set, rules, found, written, document_of, keys)


def is_held_back(name: str, document: str) -> bool:
    """Whether a document of the set `name` never trains."""
    if name in NEVER_TRAINED:
        return True
    return hashlib.sha256(f"{name}\0{document}".encode()).digest()[0] / 256 < HELD_BACK


def shares(found: Sequence[Source], *, pairs: bool = False) -> list[float]:
    """Which part of a pass each set is: by weight and number of questions, those written by rule at most a tenth."""
    sizes = [sum(weight * len(items) for weight, items in source.streams(pairs=pairs)) for source in found]
    free = sum(size for source, size in zip(found, sizes, strict=True) if not source.rules.ruled)
    ruled = sum(sizes) - free
    allowed = min(ruled, free * _RULED_SHARE / (1 - _RULED_SHARE)) if free else ruled
    sizes = [
        size * allowed / ruled if source.rules.ruled and ruled else size
        for source, size in zip(found, sizes, strict=True)
    ]
    return [size / (sum(sizes) or 1) for size in sizes]


def order(found: Sequence[Source], *, passes: float, seed: int, pairs: bool = False) -> list[tuple[int, int]]:
    """All that leads a group in training: (place of the source, place in it), one after the other.

    A pass has as many groups as the sets that are not written by rule have questions; each set's part of it is its
    share. With `pairs` they are unanswerable questions whose passage answers another one, alone.
    """
    streams = [source.streams(pairs=pairs) for source in found]
    counts = [sum(len(items) for _, items in own) for own in streams]
    size = sum(n for source, n in zip(found, counts, strict=True) if not source.rules.ruled) or sum(counts)
    queues: list[Iterator[tuple[int, int]]] = []
    turns: list[int] = []
    for place, (own, share) in enumerate(zip(streams, shares(found, pairs=pairs), strict=True)):
        whole = sum(weight * len(items) for weight, items in own)
        for at, (weight, items) in enumerate(own):
            endless = _endless(items, random.Random(f"{seed} {found[place].name}{' lacking' * at}"))  # noqa: S311
            turns += [len(queues)] * (round(passes * size * share * weight * len(items) / whole) if whole else 0)
            queues.append(zip(itertools.repeat(place), endless))
    # Every set's questions keep their own order: repeats come after all others.
    random.Random(f"{seed} order").shuffle(turns)  # noqa: S311  # nothing secret is drawn
    return [next(queues[turn]) for turn in turns]


def _endless(items: Sequence[int], random_: random.Random) -> Iterator[int]:
    while items:
        yield from random_.sample(items, len(items))


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
