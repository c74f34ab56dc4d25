"""Groups: a question with the passage that answers it and near ones that do not, and an unanswerable question.

A group depends only on the seed and its place in the order, so that training can be resumed anywhere.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.evaluation.squad import contains_any
from app.tuning.adapter.examples import perturbed
from app.tuning.bm25 import Bm25
from app.tuning.evidence_reader.mixture import Asked, Company, Lacking, Source
from app.tuning.evidence_reader.partners import Partners
from retrieval.span_model import MOST_ANSWER_TOKENS, Window, windows_of

NEAR = 3  # passages besides the right one; one fewer with an unanswerable question
JOINED_CHARS = 1100  # about the length of a window
_CLOSEST = 5  # of the nearest passages some are drawn, so that a second pass sees others
_AT_RANDOM = 0.1
_FOREIGN = 0.3  # where no other passage of its set may be used
_JOINED = 0.25
_WRITTEN = 0.7  # a question that was written to be unanswerable rather than one that was changed to be
_BOTH_LINES, _ONE_LINE = 0.6, 0.2  # title and heading, only the inner one; else the bare text
_APART = " — "  # between a document's title and a heading in it, in the sets that have both
IGNORED = -1

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """A window with its targets.

    `golds` are first and last tokens of right answers, places in the window; `tags` say of every token of the passage
    whether it is evidence: 1, 0, or `IGNORED`.
    """

    window: Window
    golds: tuple[Place, ...]
    tags: tuple[int, ...]

    def silent(self) -> "Reading":
        """The same window where nothing answers."""
        return replace(self, golds=(), tags=(0,) * len(self.tags))


@dataclass(frozen=True, slots=True)
class View:
    """A question and the readings among which its answer is, or nowhere.

    Where `pointed` is false the question has no targets for the start and end of an answer.
    """

    readings: tuple[Reading, ...]
    pointed: bool = True

    @property
    def answered(self) -> bool:
        """Whether a span of it is right."""
        return any(reading.golds for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Group:
    """A question with its passages, and perhaps a second one that nothing answers.

    `paired` is where people wrote the second about the passage that answers the first: the first reading of `asked` and
    the one of `unanswered` show the same characters of it.
    """

    asked: View
    unanswered: View | None
    paired: bool = False

    @property
    def views(self) -> tuple[View, ...]:
        """Both, or the one."""
        return (self.asked,) if self.unanswered is None else (self.asked, self.unanswered)

    @property
    def tokens(self) -> int:
        """Tokens of all windows, without padding."""
        return sum(len(reading.window.ids) for view in self.views for reading in view.readings)


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage as input: the lines above it and its text, with the characters that answer."""

    text: str
    spans: tuple[Place, ...] = ()
    evidence: tuple[Place, ...] = ()

    def below(self, above: str) -> "Shown":
        """The same below other text."""
        moved = len(above)
        return Shown(above + self.text, _moved(self.spans, moved), _moved(self.evidence, moved))

    def above(self, below: str) -> "Shown":
        """The same above other text."""
        return Shown(self.text + below, self.spans, self.evidence)


class Grouper:
    """Makes the groups of several sources."""

    def __init__(self, sources: Sequence[Source], tokenizer: Any, *, seed: int, near: int = NEAR) -> None:
        """`tokenizer` is a `tokenizers.Tokenizer` of the BERT kind without truncation.

        `near` is how many passages stand besides the right one, one fewer with an unanswerable question.
        """
        self._sources = list(sources)
        self._near = [Neighbours(source) for source in sources]
        self._partners = [Partners(source) for source in sources]
        self._tokenizer = tokenizer
        self._seed = seed
        self._count = near

    def group(self, at: int, place: int, question: int) -> Group | None:
        """The group `at` of the order, led by the question of that number in the source at `place`.

        None when no window holds an answer, and where no answerable question can stand beside an unanswerable one.
        """
        random_ = random.Random(f"{self._seed} {at}")  # noqa: S311  # nothing secret is drawn
        source = self._sources[place]
        first = len(source.questions)
        second = None if question < first else source.lacking[question - first]
        one = source.questions[question] if second is None else self._partners[place].beside(second, random_)
        if one is None:
            return None
        lines = lines_of(source, one, random_)
        written = second is not None
        if second is None:
            second, written = self._unanswered(source, one, place, random_)
        paired = second is not None and written and second.passage == one.passage
        company = self._company(place, one, random_, count=self._count - (second is not None))
        shown = Shown(source.text(one.passage), one.spans, one.evidence)
        if company and not paired and random_.random() < _JOINED:
            shown, company = _joined(shown, company, random_)
        texts = [shown.below(heading(source, one.passage, lines))]
        texts += [Shown(text).below(above) for above, text in company_texts(company, lines)]
        readings = [reading_of(self._tokenizer, one.example.question, text, random_) for text in texts]
        right, *others = readings
        if right is None or not (any(tag == 1 for tag in right.tags)):
            return None
        kept = tuple(reading for reading in (right, *others) if reading is not None)
        unanswered = None
        if second is not None:
            text = texts[0]
            if second.passage != one.passage:
                text = Shown(source.text(second.passage)).below(heading(source, second.passage, lines))
            reading = reading_of(self._tokenizer, second.question, text, random_)
            unanswered = None if reading is None else View((reading.silent(),))
        asked = View(kept, pointed=source.rules.pointed and bool(right.golds))
        return Group(asked, unanswered, paired and unanswered is not None)

    def estimate(self, place: int, question: int) -> int:
        """About how many characters a group has, without making it."""
        source = self._sources[place]
        alone = source.rules.company is Company.FOREIGN
        first = len(source.questions)
        one = source.questions[question] if question < first else source.lacking[question - first]
        return len(source.text(one.passage)) * (2 if alone else 1 + self._count)

    def _unanswered(
        self, source: Source, one: Asked, place: int, random_: random.Random
    ) -> tuple[Lacking | None, bool]:
        """A question that the passage of `one` looks as if it answered, and whether people wrote it."""
        written = source.written.get(one.passage, ())
        if written and random_.random() < _WRITTEN:
            return Lacking(random_.choice(written), one.passage), not source.rules.ruled
        if not source.rules.pointed:
            return None, False
        others = [source.text(key) for key in self._near[place].siblings(one.passage)[: 2 * _CLOSEST]]
        others = others or [source.text(random_.choice(source.keys)) for _ in range(3)]
        changed = perturbed(one.example, source.text(one.passage), random_=random_, others=others)
        return None if changed is None else Lacking(changed.question, one.passage), False

    def _company(self, place: int, one: Asked, random_: random.Random, *, count: int) -> list[tuple[Source, str]]:
        """Passages without the answer: near ones, now and then one at random."""
        source = self._sources[place]
        if not count:
            return []
        if source.rules.company is Company.FOREIGN:
            foreign = [other for other in self._sources if other is not source and not other.rules.ruled]
            if not foreign or random_.random() >= _FOREIGN:
                return []
            other = random_.choice(foreign)
            drawn = random_.choice(other.keys)
            return [(other, drawn)] if is_silent(other, drawn, one) else []
        near = self._near[place].near(one)
        found = random_.sample(near[:_CLOSEST], min(count, len(near[:_CLOSEST])))
        if found and random_.random() < _AT_RANDOM:
            drawn = random_.choice(source.keys)
            if drawn not in found and drawn not in one.example.needs and is_silent(source, drawn, one):
                found[-1] = drawn
        return [(source, key) for key in found]


class Neighbours:
    """Finds passages of a source that look as if they answered, by BM25."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._keys = list(source.keys)
        self._index = Bm25([source.text(key) for key in self._keys])
        self._rows: dict[str, list[int]] = {}
        for row, key in enumerate(self._keys):
            self._rows.setdefault(source.document_of[key], []).append(row)

    def siblings(self, key: str) -> list[str]:
        """Other passages of the same document."""
        return [self._keys[row] for row in self._rows[self._source.document_of[key]] if self._keys[row] != key]

    def near(self, one: Asked, *, count: int = 2 * _CLOSEST) -> list[str]:
        """At most `count` passages that do not hold an answer, best first; those of its document before others."""
        scores = self._index.scores(one.example.question)
        ranked = [int(row) for row in (-scores).argsort(kind="stable")]
        if self._source.rules.company is Company.DOCUMENT:
            own = set(self._rows[self._source.document_of[one.passage]])
            ranked = [row for row in ranked if row in own]
        title = self._source.question_set.documents[one.passage].title
        found: list[str] = []
        for row in ranked[: 8 * count]:
            key = self._keys[row]
            if key not in one.example.needs and is_silent(self._source, key, one, shared=title):
                found.append(key)
            if len(found) == count:
                break
        return found


def is_silent(source: Source, key: str, one: Asked, *, shared: str = "") -> bool:
    """Whether neither a passage nor its title contains the answer; a title `shared` with the right one is ignored."""
    title = source.question_set.documents[key].title
    title = "" if title == shared else title
    return not contains_any(f"{title}\n{source.text(key)}", one.example.golds)


def lines_of(source: Source, one: Asked, random_: random.Random) -> int:
    """Number of lines above the passages of a group: title and heading, the inner one, none.

    A title that holds the answer would put it above passages that do not answer.
    """
    chance = random_.random()
    title = source.question_set.documents[one.passage].title
    if contains_any(title, one.example.golds):
        return 0
    return 2 if chance < _BOTH_LINES else int(chance < _BOTH_LINES + _ONE_LINE)


def heading(source: Source, key: str, lines: int) -> str:
    """At most `lines` lines above it: the document's title and the heading in it, of which the inner one is kept."""
    names = [" ".join(name.split()) for name in source.question_set.documents[key].title.split(_APART, 1)]
    kept = [name for name in names if name][-lines:] if lines else []
    return "".join(f"{name}\n" for name in kept)


def company_texts(company: Sequence[tuple[Source, str]], lines: int) -> Iterator[tuple[str, str]]:
    """The lines above each passage, and the passage."""
    for source, key in company:
        yield heading(source, key, lines), source.text(key)


def reading_of(tokenizer: Any, question: str, shown: Shown, random_: random.Random) -> Reading | None:
    """The window with most of the evidence, of a passage without any one by chance; None where there is no text."""
    windows = windows_of(tokenizer, question, shown.text)
    if not windows:
        return None
    if shown.evidence:
        window = max(windows, key=lambda one: sum(_touches(place, shown.evidence) for place in one.offsets))
    else:
        window = random_.choice(windows)
    return _reading(window, shown)


def readings_of(tokenizer: Any, question: str, shown: Shown) -> list[Reading]:
    """All windows of a passage."""
    return [_reading(window, shown) for window in windows_of(tokenizer, question, shown.text)]


def _reading(window: Window, shown: Shown) -> Reading:
    golds = tuple(found for span in shown.spans if (found := tokens_of(window, span)) is not None)
    tags = tuple(
        1 if _touches(place, shown.evidence) else IGNORED if _touches(place, shown.spans) else 0
        for place in window.offsets
    )
    return Reading(window, golds, tags)


def tokens_of(window: Window, span: Place) -> Place | None:
    """First and last token of the characters; None where the window has not all of them or they are too long."""
    inside = [window.first + at for at, place in enumerate(window.offsets) if _touches(place, (span,))]
    whole = window.offsets[0][0] <= span[0] and window.offsets[-1][1] >= span[1]
    if not inside or not whole or len(inside) > MOST_ANSWER_TOKENS:
        return None
    return inside[0], inside[-1]


def _joined(
    shown: Shown, company: list[tuple[Source, str]], random_: random.Random
) -> tuple[Shown, list[tuple[Source, str]]]:
    """The right passage with one of the others before or behind it, as touching passages are read when answering."""
    (source, key), *rest = company
    text = source.text(key)
    if len(text) + len(shown.text) >= JOINED_CHARS:
        return shown, company
    joined = shown.below(f"{text}\n") if random_.random() < 0.5 else shown.above(f"\n{text}")
    return joined, rest


def _touches(place: Place, spans: Sequence[Place]) -> bool:
    return any(place[0] < end and place[1] > start for start, end in spans)


def _moved(spans: Sequence[Place], by: int) -> tuple[Place, ...]:
    return tuple((start + by, end + by) for start, end in spans)
