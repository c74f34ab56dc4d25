"""A question set small enough to know by heart, as a folder and as values."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FACTS = [
    ("lighthouse", "Lighthouse", "The lighthouse keeper counted forty ships before noon. Then fog came in."),
    ("bakery", "Bakery", "Rye dough rests for nine hours in the bakery. The oven is wood fired."),
    ("glacier", "Glacier", "The glacier lost twelve metres last summer. Its meltwater feeds the Rhone."),
    ("violin", "Violin", "Maria tunes her violin to 443 hertz. She plays on gut strings."),
    ("harbour", "", "The harbour master is called Jonas Berg. He has two dogs."),
    ("museum", "Museum", "Admission to the museum costs seven francs. Mondays are free."),
    ("orchard", "Orchard", "Apples in the orchard are picked in October. Pears come earlier."),
    ("railway", "Railway", "The narrow gauge railway opened in 1898. It climbs 900 metres."),
    ("library", "Library", "The library lends maps for three weeks. Atlases stay inside."),
    ("garden", "Garden", "Bees visit the garden for its lavender. The pond freezes in winter."),
]
QUESTIONS = [
    ("q-ships", "How many ships did the lighthouse keeper count?", "forty", "lighthouse"),
    ("q-dough", "How long does rye dough rest in the bakery?", "nine hours", "bakery"),
    ("q-glacier", "How much did the glacier lose last summer?", "twelve metres", "glacier"),
    ("q-violin", "To what pitch does Maria tune her violin?", "443 hertz", "violin"),
    ("q-master", "What is the harbour master called?", "Jonas Berg", "harbour"),
    ("q-museum", "What does admission to the museum cost?", "seven francs", "museum"),
    ("q-apples", "When are apples in the orchard picked?", "October", "orchard"),
    ("q-railway", "When was the narrow gauge railway opened?", "1898", "railway"),
]
UNANSWERABLE = [("q-moon", "Who owns the quarry on Titan?"), ("q-none", "Which opera premiered yesterday evening?")]


def corpus() -> list[dict[str, Any]]:
    return [{"_id": name, "title": title, "text": text} for name, title, text in FACTS]


def queries() -> list[dict[str, Any]]:
    answerable = [
        {"_id": name, "text": text, "answers": [answer], "metadata": {"lang": "en" if at % 2 else "de"}}
        for at, (name, text, answer, _) in enumerate(QUESTIONS)
    ]
    return answerable + [{"_id": name, "text": text, "unanswerable": True} for name, text in UNANSWERABLE]


def qrels() -> list[str]:
    return ["query-id\tcorpus-id\tscore", *(f"{name}\t{document}\t1" for name, _, _, document in QUESTIONS)]


def spans() -> list[dict[str, Any]]:
    texts = {name: text for name, _, text in FACTS}
    rows = []
    for name, _, answer, document in QUESTIONS:
        start = texts[document].index(answer)
        rows.append(
            {"query_id": name, "corpus_id": document, "start": start, "end": start + len(answer), "text": answer}
        )
    return rows


def write_set(
    folder: Path,
    *,
    corpus_rows: Sequence[dict[str, Any]] | None = None,
    query_rows: Sequence[dict[str, Any]] | None = None,
    qrels_lines: Sequence[str] | None = None,
    span_rows: Sequence[dict[str, Any]] | None = None,
) -> Path:
    """The set in `folder`, parts of it replaced; `span_rows=[]` writes no spans."""
    folder.mkdir(parents=True, exist_ok=True)
    _lines(folder / "corpus.jsonl", map(json.dumps, corpus() if corpus_rows is None else corpus_rows))
    _lines(folder / "queries.jsonl", map(json.dumps, queries() if query_rows is None else query_rows))
    _lines(folder / "qrels.tsv", qrels() if qrels_lines is None else qrels_lines)
    if rows := spans() if span_rows is None else span_rows:
        _lines(folder / "spans.jsonl", map(json.dumps, rows))
    return folder


def _lines(path: Path, lines: Any) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
