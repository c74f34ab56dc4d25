"""A pack: groups as token ids in one small file, from which training needs no question set, tokenizer or search.

Texts (questions, and passages as they are shown in a window) are stored once. The arrays follow one another, each
compressed by itself with LZMA, behind a line of JSON that tells their types and sizes and which groups are each part.
"""

import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.tuning.evidence_reader.groups import IGNORED, Group, Place, Reading, View
from retrieval.span_model import Window

MIXTURE, PAIRS = "mixture", "pairs"
"""The parts that train."""
HELD_BACK, NEAR_MISSES = "held-back", "near-misses"
"""Parts of documents that never train: groups of the mixture; questions of one passage each."""
_FORMAT = 1
_TYPES = {
    "tokens": "u2",  # of all texts, one after the other
    "text_sizes": "u2",
    "groups": "u1",  # bits: has a second view, paired, the first view pointed, the second view pointed
    "questions": "u4",  # text of each view
    "view_sizes": "u1",  # readings of each view
    "passages": "u4",  # text of each reading
    "gold_counts": "u1",  # of each reading
    "gold_starts": "u2",  # in the passage's tokens
    "gold_more": "u1",  # tokens after the first
    "run_counts": "u1",  # of each reading: runs of tags other than 0
    "run_starts": "u2",
    "run_sizes": "u2",
    "run_tags": "i1",
}
_SECOND, _PAIRED, _POINTED, _SECOND_POINTED = 1, 2, 4, 8

Columns = dict[str, npt.NDArray[Any]]


class Pack:
    """The groups of a pack, by parts; a group is made when it is asked for.

    The windows tell how many tokens of the passage they show, not which characters: their offsets are all (0, 0).
    """

    def __init__(self, parts: Mapping[str, range], columns: Columns, *, specials: tuple[int, int]) -> None:
        self.parts = parts
        self._columns = columns
        self._opening, self._separator = specials

    @classmethod
    def of(cls, parts: Mapping[str, Iterable[Group]], *, specials: tuple[int, int]) -> Self:
        """Takes groups in.

        Args:
            parts: The groups of each part.
            specials: The ids that open a window and that end its question and its passage.

        Raises:
            ValueError: A window does not begin and end with `specials`, or has more than the pack's types can hold.
        """
        rows: dict[str, list[int]] = {name: [] for name in _TYPES}
        texts: dict[tuple[int, ...], int] = {}
        ranges = {}
        for name, groups in parts.items():
            first = len(rows["groups"])
            for group in groups:
                _take_in(rows, texts, group, specials)
            ranges[name] = range(first, len(rows["groups"]))
        for text in texts:
            rows["text_sizes"].append(len(text))
        try:
            columns = {name: np.array(row, dtype=_TYPES[name]) for name, row in rows.items() if name != "tokens"}
            columns["tokens"] = np.fromiter((token for text in texts for token in text), dtype=_TYPES["tokens"])
        except OverflowError as error:
            raise ValueError("a group has more than a pack can hold") from error
        return cls(ranges, columns, specials=specials)

    @classmethod
    def read(cls, file: Path) -> Self:
        """The pack in `file`.

        Raises:
            ValueError: It is no pack, or of another format.
            OSError: It cannot be read.
        """
        data = file.read_bytes()
        line, _, rest = data.partition(b"\n")
        try:
            said = json.loads(line)
            if said["format"] != _FORMAT or said["arrays"].keys() != _TYPES.keys():
                raise ValueError("format")
            columns, at = {}, 0
            for name, size in said["arrays"].items():
                columns[name] = np.frombuffer(lzma.decompress(rest[at : at + size]), dtype=_TYPES[name])
                at += size
            parts = {name: range(*ends) for name, ends in said["parts"].items()}
            opening, separator = said["specials"]
        except (KeyError, TypeError, ValueError, UnicodeDecodeError, lzma.LZMAError) as error:
            raise ValueError(f"{file.name} is no pack of this format") from error
        return cls(parts, columns, specials=(opening, separator))

    def write(self, file: Path) -> None:
        """Writes the pack, whole or not at all."""
        arrays = {name: _compressed(self._columns[name]) for name in _TYPES}
        said = {
            "format": _FORMAT,
            "parts": {name: [one.start, one.stop] for name, one in self.parts.items()},
            "specials": [self._opening, self._separator],
            "arrays": {name: len(data) for name, data in arrays.items()},
        }
        new = file.with_name(f"{file.name}.new")
        new.write_bytes(b"".join((json.dumps(said).encode(), b"\n", *arrays.values())))
        new.replace(file)

    def group(self, number: int) -> Group:
        """The group of that number, over all parts.

        Raises:
            IndexError: There is none.
        """
        flags = int(self._columns["groups"][number])
        view = int(self._first["view"][number])
        asked = self._view(view, pointed=bool(flags & _POINTED))
        second = self._view(view + 1, pointed=bool(flags & _SECOND_POINTED)) if flags & _SECOND else None
        return Group(asked, second, bool(flags & _PAIRED))

    @cached_property
    def _first(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Where the views of each group begin, the readings of each view, the golds and runs of each reading."""
        columns = self._columns
        sizes = {
            "view": 1 + (columns["groups"] & _SECOND),
            "reading": columns["view_sizes"],
            "gold": columns["gold_counts"],
            "run": columns["run_counts"],
            "token": columns["text_sizes"],
        }
        return {name: np.concatenate([[0], np.cumsum(size, dtype=np.int64)]) for name, size in sizes.items()}

    def _view(self, number: int, *, pointed: bool) -> View:
        question = self._text(int(self._columns["questions"][number]))
        head = (self._opening, *question, self._separator)
        first, end = self._first["reading"][number : number + 2].tolist()
        return View(tuple(self._reading(head, at) for at in range(first, end)), pointed)

    def _reading(self, head: tuple[int, ...], number: int) -> Reading:
        columns = self._columns
        passage = self._text(int(columns["passages"][number]))
        golds = slice(*self._first["gold"][number : number + 2].tolist())
        starts = [len(head) + at for at in columns["gold_starts"][golds].tolist()]
        ends = [start + more for start, more in zip(starts, columns["gold_more"][golds].tolist(), strict=True)]
        tags = [0] * len(passage)
        runs = slice(*self._first["run"][number : number + 2].tolist())
        names = ("run_starts", "run_sizes", "run_tags")
        for start, size, tag in zip(*(columns[name][runs].tolist() for name in names), strict=True):
            tags[start : start + size] = [tag] * size
        window = Window((*head, *passage, self._separator), len(head), ((0, 0),) * len(passage))
        return Reading(window, tuple(zip(starts, ends, strict=True)), tuple(tags))

    def _text(self, number: int) -> list[int]:
        first, end = self._first["token"][number : number + 2].tolist()
        found: list[int] = self._columns["tokens"][first:end].tolist()
        return found


def _take_in(
    rows: Mapping[str, list[int]], texts: dict[tuple[int, ...], int], group: Group, specials: tuple[int, int]
) -> None:
    second = group.unanswered
    rows["groups"].append(
        _SECOND * (second is not None)
        + _PAIRED * group.paired
        + _POINTED * group.asked.pointed
        + _SECOND_POINTED * (second is not None and second.pointed)
    )
    for view in group.views:
        window = view.readings[0].window
        rows["questions"].append(texts.setdefault(window.ids[1 : window.first - 1], len(texts)))
        rows["view_sizes"].append(len(view.readings))
        for reading in view.readings:
            _take_in_reading(rows, texts, reading, specials)


def _take_in_reading(
    rows: Mapping[str, list[int]], texts: dict[tuple[int, ...], int], reading: Reading, specials: tuple[int, int]
) -> None:
    window = reading.window
    first, last = window.first, len(window.ids) - 1
    if (window.ids[0], window.ids[first - 1], window.ids[last]) != (specials[0], specials[1], specials[1]):
        raise ValueError("a window does not stand between the model's special tokens")
    rows["passages"].append(texts.setdefault(window.ids[first:last], len(texts)))
    rows["gold_counts"].append(len(reading.golds))
    for start, end in reading.golds:
        rows["gold_starts"].append(start - first)
        rows["gold_more"].append(end - start)
    runs = list(_runs(reading.tags))
    rows["run_counts"].append(len(runs))
    for place, tag in runs:
        rows["run_starts"].append(place[0])
        rows["run_sizes"].append(place[1] - place[0])
        rows["run_tags"].append(tag)


def _runs(tags: Sequence[int]) -> Iterable[tuple[Place, int]]:
    """Where tags that are alike stand one after the other, with the tag; without those that are 0."""
    first = 0
    for at in range(1, len(tags) + 1):
        if at == len(tags) or tags[at] != tags[first]:
            if tags[first] in (1, IGNORED):
                yield (first, at), tags[first]
            first = at


def _compressed(column: npt.NDArray[Any]) -> bytes:
    # Positions are told apart by their place in a number: the two bytes of a token follow different statistics.
    bits = {1: 0, 2: 1, 4: 2}[column.dtype.itemsize]
    chosen = {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 26, "lp": bits, "pb": bits, "lc": 3 - bits % 3}
    return lzma.compress(column.tobytes(), format=lzma.FORMAT_XZ, filters=[chosen])
