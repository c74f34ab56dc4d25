"""Measures how well passages are found again in the next version of their text, on real documents edited by rule.

Usage: `python -m tests.bench.ingest.ageing ../shared/data [--documents 100] [--without-old] [--show 10]`.
Sentences are inserted, deleted, moved, reworded and renumbered, so it is known what became of every passage that could
be quoted, and where it stands.
"""

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias

from ingestion.child_extractor import ChildExtractor, find_soffice
from ingestion.errors import IngestionError
from ingestion.normalise import normalise
from ingestion.ports import Extractor
from ingestion.revisions import FoundPassage, PassageState, Revision
from retrieval.sentences import unit_spans
from retrieval.types import Span
from retrieval.units import units_of
from retrieval.words import word_spans

_CORPORA = ("squad2-dev", "train/cuad-clauses")
_LEAST_SENTENCES = 30
_LEAST_WORDS = 4  # of a passage; fewer say nothing by themselves
_MOST_PASSAGES = 120  # of one document, drawn by chance
_MOST_CHARS = 400_000
_WORD = re.compile(r"[^\W\d_]{3,}")
_DIGITS = re.compile(r"\d+")


Words: TypeAlias = list[tuple[str, int | None]]
"""Words, each with the number of its word in the old sentence, if any."""


@dataclass(slots=True)
class Piece:
    """A sentence of the edited text: its words, and for each the number of its word in the old sentence, if any."""

    words: Words
    sentence: int | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """A passage of the old text, with what became of it."""

    edit: str
    passage: Span
    state: PassageState
    place: Span | None


@dataclass(slots=True)
class Figures:
    """Counts by edit: passages, right states, right states and places. `seconds` are those of the processor."""

    passages: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    confused: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: float = 0.0
    skipped: int = 0


class EditedText:
    """A text with sentences edited by chance, and what became of its words."""

    def __init__(self, text: str, *, seed: int) -> None:
        """Edits about half of the sentences."""
        self.old = text
        self._draw = random.Random(seed)
        self._spans = unit_spans(text)
        self._vocabulary = sorted(set(_WORD.findall(text))) or ["other"]
        self.edits: dict[int, str] = {}
        self.new = ""
        self._at: dict[tuple[int, int], Span] = {}  # of each old word (sentence, word) that is left
        self._added: list[int] = []  # where words of no old sentence begin
        self._write(self._edited())

    def _edited(self) -> list[Piece]:
        draw, pieces, moved = self._draw, list[Piece](), list[list[Piece]]()
        at = 0
        while at < len(self._spans):
            run = range(at, min(len(self._spans), at + draw.randint(1, 4)))
            at = run.stop
            edit = draw.choices(["keep", "delete", "reword", "renumber", "insert", "move"], [45, 10, 15, 12, 10, 8])[0]
            if edit == "insert":
                pieces += [self._invented() for _ in range(draw.randint(1, 3))]
            block: list[Piece] = []
            for sentence in run:
                text = self._text(sentence)
                words: Words = [(text[a:b], word) for word, (a, b) in enumerate(word_spans(text))]
                changed = words
                if edit == "reword":  # one word in ten to four in ten
                    changed = reworded(words, draw.uniform(0.1, 0.4), self._vocabulary, draw)
                elif edit == "renumber":
                    changed = self._renumbered(words)
                self.edits[sentence] = edit if changed != words or edit in {"delete", "move"} else "keep"
                block.append(Piece(changed, sentence))
            if edit == "move":
                moved.append(block)
            elif edit != "delete":
                pieces += block
        for block in moved:
            place = draw.randint(0, len(pieces))
            pieces[place:place] = block
        return pieces

    def _text(self, sentence: int) -> str:
        start, end = self._spans[sentence]
        return self.old[start:end]

    def _invented(self) -> Piece:
        words = self._draw.choices(self._vocabulary, k=self._draw.randint(5, 20))
        return Piece([(word, None) for word in [*words[:-1], f"{words[-1]}."]])

    def _renumbered(self, words: Words) -> Words:
        step = self._draw.randint(1, 9)
        return [(_DIGITS.sub(lambda found: str(int(found[0][:12]) + step), word), at) for word, at in words]

    def _write(self, pieces: Sequence[Piece]) -> None:
        written: list[str] = []
        length = 0
        for piece in pieces:
            for word, origin in piece.words:
                if piece.sentence is not None and origin is not None:
                    self._at[piece.sentence, origin] = Span(length, length + len(word))
                else:
                    self._added.append(length)
                spaced = self._gap(piece.sentence, origin)
                written += [word, spaced]
                length += len(word) + len(spaced)
            if written and piece.words:
                length -= len(written.pop())
                ending = self._ending(piece.sentence)
                written.append(ending)
                length += len(ending)
        self.new = "".join(written)

    def _gap(self, sentence: int | None, word: int | None) -> str:
        """What stood behind a word of the old text."""
        if sentence is None or word is None:
            return " "
        text = self._text(sentence)
        spans = word_spans(text)
        return text[spans[word][1] : spans[word + 1][0]] if word + 1 < len(spans) else " "

    def _ending(self, sentence: int | None) -> str:
        if sentence is None or sentence + 1 == len(self._spans):
            return "\n"
        return self.old[self._spans[sentence][1] : self._spans[sentence + 1][0]] or " "

    def expected(self) -> Iterator[Expected | None]:
        """What became of every passage that could be quoted, and of parts of some; None where two answers are right."""
        spans = [unit.span for unit in units_of(self.old) if not unit.heading and self._says(unit.span)]
        spans = self._draw.sample(spans, min(_MOST_PASSAGES, len(spans)))
        parts = [part for part in map(self._part, spans) if part is not None]
        for passage in (*spans, *parts):
            yield self._expected(passage)

    def _says(self, span: Span) -> bool:
        return len(word_spans(self.old[span.start_char : span.end_char])) >= _LEAST_WORDS

    def _part(self, span: Span) -> Span | None:
        words = word_spans(self.old[span.start_char : span.end_char])
        if len(words) < 9 or self._draw.random() > 0.25:
            return None
        first = self._draw.randint(0, len(words) // 3)
        last = self._draw.randint(2 * len(words) // 3, len(words) - 1)
        return Span(span.start_char + words[first][0], span.start_char + words[last][1])

    def _expected(self, passage: Span) -> Expected | None:
        words: list[tuple[int, int]] = []
        for sentence, (start, end) in enumerate(self._spans):
            if start >= passage.end_char or end <= passage.start_char:
                continue
            for word, (a, b) in enumerate(word_spans(self._text(sentence))):
                if passage.start_char < start + b and start + a < passage.end_char:
                    words.append((sentence, word))
        edits = {self.edits[sentence] for sentence, _ in words}
        left = [self._at[word] for word in words if word in self._at]
        edit = "/".join(sorted(edits))
        if not left:
            state = PassageState.GONE
            return Expected(edit, passage, state, None) if edits == {"delete"} else None
        if any(a.start_char > b.start_char for a, b in pairwise(left)) or ("move" in edits and len(edits) > 1):
            return None  # torn apart
        place = Span(left[0].start_char, left[-1].end_char)
        whole = len(left) == len(words) and not any(place.start_char < at < place.end_char for at in self._added)
        between = " ".join(self.new[place.start_char : place.end_char].split())
        whole = whole and between == " ".join(self.old[passage.start_char : passage.end_char].split())
        if not whole and 2 * len(left) < len(words) and "renumber" not in edits:
            return None  # more is lost than is left
        if not whole:
            return Expected(edit, passage, PassageState.ALTERED, place)
        same = (
            place == passage
            and self.new[place.start_char : place.end_char] == self.old[place.start_char : place.end_char]
        )
        return Expected(edit, passage, PassageState.CURRENT if same else PassageState.MOVED, place)


def reworded(words: Words, share: float, vocabulary: Sequence[str], draw: random.Random) -> Words:
    """With such a share of the words replaced, left out or followed by another; the last word keeps its mark."""
    changed = list[tuple[str, int | None]]()
    hits = {*draw.sample(range(len(words)), max(1, round(share * len(words))))} if len(words) > 2 else set()
    for at, word in enumerate(words):
        last = at + 1 == len(words)  # a new wording ends as the old one did
        stop = word[0][len(word[0].rstrip(".,;:!?")) :] if last else ""
        other = (draw.choice(vocabulary) + stop, None)
        kind = draw.choice(["replace", "replace", "drop", "add"])
        if at not in hits or (kind != "add" and other[0] == word[0]):
            changed.append(word)
        elif kind == "replace" or last:
            changed.append(other)
        elif kind == "add":
            changed += [word, other]
    return changed


def measure(texts: Sequence[tuple[str, str]], *, without_old: bool, show: int) -> Figures:
    """The figures of all passages of texts, given as (file, text)."""
    figures = Figures()
    shown = 0
    for number, (file, text) in enumerate(texts):
        edited = EditedText(text, seed=number)
        wanted = list(edited.expected())
        revision = Revision(edited.new, old=None if without_old else edited.old)
        for one in wanted:
            if one is None:
                figures.skipped += 1
                continue
            passage = text[one.passage.start_char : one.passage.end_char]
            started = time.thread_time()
            found = revision.find(passage, start_char=one.passage.start_char)
            figures.seconds += time.thread_time() - started
            right, placed = found.state is one.state, is_placed(found, one)
            if {found.state, one.state} <= {PassageState.CURRENT, PassageState.MOVED}:
                right = found.span == one.place or found.state is one.state
            for key in (one.edit, "all"):
                figures.passages[key] += 1
                figures.states[key] += right
                figures.places[key] += right and placed
            figures.confused[one.state, found.state] += 1
            if not (right and placed) and shown < show:
                shown += 1
                at = "" if found.span is None else edited.new[found.span.start_char : found.span.end_char]
                was = "" if one.place is None else edited.new[one.place.start_char : one.place.end_char]
                sys.stdout.write(
                    f"{file} [{one.edit}] {one.state} -> {found.state}\n"
                    f"  old    {passage!r}\n  wanted {was!r}\n  found  {at!r}\n"
                )
    return figures


def is_placed(found: FoundPassage, wanted: Expected) -> bool:
    """Whether the place is right: exactly for what is unchanged, for at least half of both for what is altered."""
    if found.span is None or wanted.place is None:
        return found.span is None and wanted.place is None
    if wanted.state is not PassageState.ALTERED:
        return found.span == wanted.place
    both = min(found.span.end_char, wanted.place.end_char) - max(found.span.start_char, wanted.place.start_char)
    lengths = [span.end_char - span.start_char for span in (found.span, wanted.place)]
    return 2 * both >= max(lengths)


def texts_of(data: Path, extractor: Extractor, *, most: int) -> list[tuple[str, str]]:
    """Canonical texts with enough sentences, by name: those of the files, then of articles and contracts by digest."""
    with (data / "documents" / "manifest.jsonl").open() as lines:
        files = [str(json.loads(line)["file"]) for line in lines]
    found: list[tuple[str, str]] = []
    for file in files:
        with suppress(IngestionError):
            found.append((file, extractor.extract(data / "documents" / file, filename=Path(file).name).text))
    wholes: dict[str, list[str]] = defaultdict(list)
    for corpus in _CORPORA:
        with (data / corpus / "corpus.jsonl").open() as lines:
            for row in map(json.loads, lines):
                wholes[f"{corpus}: {row['title']}"].append(normalise(str(row["text"])))
    found += sorted(
        ((name, "\n\n".join(parts)) for name, parts in wholes.items()),
        key=lambda one: hashlib.sha256(one[1].encode()).hexdigest(),
    )
    return list(islice((one for one in found if is_fit(one[1])), most))


def is_fit(text: str) -> bool:
    """Whether a text has enough sentences and most of them stand in it once: blind text has no passages."""
    sentences = [text[start:end] for start, end in unit_spans(text)] if len(text) <= _MOST_CHARS else []
    once = sum(count == 1 for count in Counter(sentences).values())
    return len(sentences) >= _LEAST_SENTENCES and 2 * once > len(sentences)


def table(figures: Figures) -> str:
    """A line for each kind of edit, and one for all."""
    lines = [f"{'':28} {'passages':>8} {'states':>7} {'places':>7}"]
    for key, count in sorted(figures.passages.items(), key=lambda item: -item[1]):
        lines.append(f"{key:28} {count:8} {figures.states[key] / count:7.3f} {figures.places[key] / count:7.3f}")
    lines += [
        f"{wanted} taken for {found}: {count}"
        for (wanted, found), count in figures.confused.most_common()
        if wanted != found
    ]
    each = 1000 * figures.seconds / max(1, figures.passages["all"])
    return "\n".join(
        [*lines, f"left out, as two answers are right: {figures.skipped}", f"{each:.3f} ms of a processor a passage"]
    )


def read_arguments(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[tuple[str, str]]]:
    """The arguments of a bench over these texts, and the texts; `show` is how many mistakes to print."""
    parser.add_argument("data", type=Path)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--show", type=int, default=0, help="so many mistakes are printed")
    arguments = parser.parse_args()
    with ChildExtractor(soffice=find_soffice()) as extractor:
        return arguments, texts_of(arguments.data, extractor, most=arguments.documents)


def main() -> None:
    """Measure and print; exit 1 below .98 of right states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-old", action="store_true", help="as where the old text is no longer kept")
    arguments, texts = read_arguments(parser)
    figures = measure(texts, without_old=arguments.without_old, show=arguments.show)
    sys.stdout.write(f"{len(texts)} documents\n{table(figures)}\n")
    if figures.states["all"] < 0.98 * figures.passages["all"]:
        sys.exit("fewer than .98 of the states are right")


if __name__ == "__main__":
    main()
