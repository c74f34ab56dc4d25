"""Question sets about things on shelves, in folders and as sources; every word is a token of `TOKENIZER`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.retrieval.reader_folder import SPECIAL, tokenizer

COLOURS = ("red", "green", "blue", "white", "black")
_WORDS = "what colour is thing on shelf of hall room the a it was put there by nobody knows who number keeper never not"
COUNT = 60
_VOCABULARY = [*SPECIAL, *_WORDS.split(), *COLOURS, *(f"t{n}" for n in range(COUNT)), *(f"r{n}" for n in range(COUNT))]


def plain(vocabulary: list[str]) -> Any:
    """A tokenizer that neither cuts nor pads."""
    made = tokenizer(vocabulary)
    made.no_truncation()
    made.no_padding()
    return made


TOKENIZER = plain(_VOCABULARY)


def write_set(folder: Path, *, count: int = COUNT, rooms: int = 6, written: bool = False, titles: bool = True) -> Path:
    """`count` passages in `rooms` documents, one question each; most colours stand in several of them."""
    folder.mkdir(parents=True)
    corpus: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    judged = ["query-id\tcorpus-id\tscore"]
    for n in range(count):
        colour = COLOURS[n % len(COLOURS)]
        text = f"the thing t{n} on the shelf is {colour} and it was put there by nobody"
        start = text.index(colour)
        corpus.append({"_id": f"p{n}", "title": f"room r{n % rooms}" if titles else "", "text": text})
        queries.append({"_id": f"q{n}", "text": f"what colour is thing t{n}", "answers": [colour]})
        spans.append(
            {"query_id": f"q{n}", "corpus_id": f"p{n}", "start": start, "end": start + len(colour), "text": colour}
        )
        judged.append(f"q{n}\tp{n}\t1")
        if written:
            queries.append(
                {
                    "_id": f"u{n}",
                    "text": f"who put thing t{n} there",
                    "answers": [],
                    "unanswerable": True,
                    "metadata": {"context_id": f"p{n}"},
                }
            )
    for name, rows in (("corpus", corpus), ("queries", queries), ("spans", spans)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")
    return folder


def words_of(ids: Sequence[int]) -> str:
    """What was read, special tokens left out."""
    return str(TOKENIZER.decode(list(ids)))


def base_of(folder: Path) -> Path:
    """A tiny encoder for `TOKENIZER`."""
    from tests.retrieval.reader_folder import build_base

    return build_base(folder, vocabulary=list(_VOCABULARY))
