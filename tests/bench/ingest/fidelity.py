"""Measures how much of a document's known text its extraction gives back, and in what order.

Usage: `python -m tests.bench.ingest.fidelity FOLDER [--only pdf] [--out JSON]`, FOLDER holding
`manifest.jsonl` and the files it names. The known texts are other projects' Markdown, so Markdown's
syntax is taken out of both sides before words are compared.
"""

import argparse
import html
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ingestion.child_extractor import ChildExtractor, find_soffice
from ingestion.chunking import Chunker
from ingestion.errors import IngestionError
from ingestion.ports import Extractor
from ingestion.types import BlockKind, Extraction
from tests.ingestion.small_tokenizer import word_piece

_WORD = re.compile(r"[^\W_]+")
_SYNTAX = (
    (re.compile(r"<!--.*?-->", re.DOTALL), " "),
    # an image, then a link, which may hold one: what is shown of it
    (re.compile(r"(?<!\\)!\[((?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]\((?:[^()\n]|\([^()\n]*\))*\)"), r" \1 "),
    (re.compile(r"(?<!\\)\[((?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]\((?:[^()\n]|\([^()\n]*\))*\)"), r" \1 "),
    (re.compile(r"</?[a-zA-Z][^<>\n]*>"), " "),
    (re.compile(r"^\s*```[\w+-]*$", re.MULTILINE), " "),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~&$])"), r"\1"),
    (re.compile(r"(\*\*\*|\*\*|~~|(?<!\w)[*_]+(?=\S)|(?<=\S)[*_]+(?!\w))"), ""),  # emphasis, also inside a word
)
_TEXT = (".txt", ".srt")


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One file's figures, shares of words: `recall` and `order` of the known ones, `precision` of the read ones.

    `order` is the longest common subsequence. `precision` counts a column's name that is repeated
    in each row of its table once, `strict_precision` every time. `error` says why nothing was read.
    """

    file: str
    known_words: int
    recall: float = 0.0
    precision: float = 0.0
    strict_precision: float = 0.0
    order: float = 0.0
    blocks: int = 0
    chunks: int = 0
    error: str = ""


def words(text: str) -> list[str]:
    """The words of a Markdown text without its syntax, in lower case; digits count, underscores part words."""
    for pattern, shown in _SYNTAX:
        text = pattern.sub(shown, text)
    return _WORD.findall(html.unescape(text).lower())


def read_words(extraction: Extraction, *, labels: bool) -> list[str]:
    """The words of an extraction in order; without `labels`, a cell of a row loses its repeated column name."""
    if labels:
        return words(extraction.text)
    pieces, names = [], set[str]()
    at = 0
    for block in extraction.blocks:
        text = extraction.text[block.start_char : block.end_char]
        if block.kind is BlockKind.TABLE_ROW:
            cells = text.split(" | ")
            labelled = [cell.partition(": ") for cell in cells]
            text = " | ".join(
                value if mark and name in names else cell
                for cell, (name, mark, value) in zip(cells, labelled, strict=True)
            )
            names |= set(cells)  # a header row stands above the rows that repeat it
        else:
            names = set()
        pieces += [extraction.text[at : block.start_char], text]
        at = block.end_char
    return words("".join([*pieces, extraction.text[at:]]))


def share(part: Sequence[str], whole: Sequence[str]) -> float:
    """How many of the words of `whole` are in `part`, each as often as it occurs; 1 where there is none."""
    return (Counter(part) & Counter(whole)).total() / len(whole) if whole else 1.0


def common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, bit-parallel over the words of `first` (Hyyrö 2004)."""
    places: dict[str, int] = defaultdict(int)
    for at, word in enumerate(first):
        places[word] |= 1 << at
    everywhere = (1 << len(first)) - 1
    row = everywhere
    for word in second:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & everywhere
    return len(first) - row.bit_count()


def compare(file: str, known: str, extraction: Extraction, chunker: Chunker) -> Fidelity:
    """The figures of one file; every block and chunk must be the text at its offsets."""
    text = extraction.text
    end = 0
    for block in extraction.blocks:
        assert end <= block.start_char < block.end_char <= len(text), f"{file}: a block out of order"
        assert text[block.start_char : block.end_char].strip(), f"{file}: a blank block"
        end = block.end_char
    chunks = chunker.chunk(extraction)
    assert all(chunk.text == text[chunk.start_char : chunk.end_char] for chunk in chunks), file
    wanted, strict, found = words(known), read_words(extraction, labels=True), read_words(extraction, labels=False)
    return Fidelity(
        file=file,
        known_words=len(wanted),
        recall=share(strict, wanted),
        precision=share(wanted, found),
        strict_precision=share(wanted, strict),
        order=common_subsequence(wanted, strict) / len(wanted) if wanted else 1.0,
        blocks=len(extraction.blocks),
        chunks=len(chunks),
    )


def known_texts(folder: Path, only: str) -> Iterator[tuple[Path, str]]:
    """The files of `folder` whose text is known: written beside them, or the file itself in a known encoding."""
    with (folder / "manifest.jsonl").open() as lines:
        rows: list[Mapping[str, Any]] = [json.loads(line) for line in lines]
    for row in rows:
        path = folder / row["file"]
        if not row["file"].startswith(only):
            continue
        if row.get("known"):
            yield path, (folder / row["known"]).read_text()
        elif row.get("decodes") and path.suffix in _TEXT:
            yield path, path.read_bytes().decode(row["encoding"]).removeprefix("\ufeff")


def measure(folder: Path, extractor: Extractor, *, only: str = "") -> list[Fidelity]:
    """The figures of every file with a known text; a file that is refused counts as nothing read."""
    chunker = Chunker(word_piece(), max_tokens=64, overlap=8)
    figures = []
    for path, known in known_texts(folder, only):
        file = str(path.relative_to(folder))
        try:
            figures.append(compare(file, known, extractor.extract(path, filename=path.name), chunker))
        except IngestionError as error:
            figures.append(Fidelity(file, len(words(known)), error=f"{error.code}: {error}"))
    return figures


def table(figures: Sequence[Fidelity]) -> str:
    """The files, poorest first, then a line per format and one for all (means over files)."""
    head = f"{'':58} {'recall':>7} {'precis.':>7} {'strict':>7} {'order':>7}"
    lines = [head]
    groups: dict[str, list[Fidelity]] = defaultdict(list)
    for figure in sorted(figures, key=lambda figure: min(figure.recall, figure.precision, figure.order)):
        lines.append(_line(figure.file, [figure]) + (f"  {figure.error}" if figure.error else ""))
        groups[Path(figure.file).suffix].append(figure)
    lines += ["", head, *(_line(f"{suffix} ({len(group)})", group) for suffix, group in sorted(groups.items()))]
    return "\n".join([*lines, _line(f"all ({len(figures)})", figures)])


def _line(name: str, group: Sequence[Fidelity]) -> str:
    columns = ("recall", "precision", "strict_precision", "order")
    return f"{name[:58]:58} " + " ".join(f"{fmean(getattr(one, column) for one in group):7.4f}" for column in columns)


def main() -> None:
    """Measure, print and, where asked, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="files whose name in the manifest begins so, for instance pdf/")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    arguments = parser.parse_args()
    with ChildExtractor(soffice=find_soffice()) as extractor:
        figures = measure(arguments.folder, extractor, only=arguments.only)
    if not figures:
        sys.exit("no file of the manifest has a known text")
    sys.stdout.write(table(figures) + "\n")
    if arguments.out:
        arguments.out.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")


if __name__ == "__main__":
    main()
