"""A small judged collection on disk: each question asks for the one passage with its rare word."""

import json
from pathlib import Path

FILLERS = ["acme revenue", "the cats", "dogs of winter", "spring rose"]


def write_collection(folder: Path, *, documents: int = 24) -> Path:
    """Document `d7` of the article `Article 3` holds the word `rare7`, which question `q7` asks for."""
    folder.mkdir(parents=True)
    corpus = [
        {"_id": f"d{n}", "title": f"Article {n // 2}", "text": f"{FILLERS[n % 4]} rare{n} fell in the spring."}
        for n in range(documents)
    ]
    queries = [{"_id": f"q{n}", "text": f"what of rare{n} in the spring", "answers": []} for n in range(documents)]
    queries.append({"_id": "unjudged", "text": "nobody knows", "answers": []})
    _lines(folder / "corpus.jsonl", [json.dumps(row) for row in corpus])
    _lines(folder / "queries.jsonl", [json.dumps(row) for row in queries])
    _lines(folder / "qrels.tsv", ["query-id\tcorpus-id\tscore", *(f"q{n}\td{n}\t1" for n in range(documents))])
    return folder


def _lines(file: Path, lines: list[str]) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
