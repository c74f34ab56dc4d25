"""`python -m tests.bench.service.contract_table DATA`: a table of eight fields from forty contracts.

The contracts are those of `train/cuad-clauses` (CUAD v1, Hendrycks et al. 2021), which no reader is trained on
(`app.tuning.evidence_reader.mixture.NEVER_TRAINED`): the first by the hash of their title whose fields lawyers marked,
or marked as absent. A contract is its passages in their order. The server is killed once a third of the cells is done,
and started again: no finished cell may be asked twice.

A cell that has a clause is right where its words or a quote are the clause or hold it, and overlaps where a quote and
the clause share eight words in a row. One without a clause is right where it is refused, or unsure.
"""

import argparse
import hashlib
import json
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.server import Server

FIELDS = {
    "Document Name": "What is the name of the contract?",
    "Parties": "Who are the parties to the agreement?",
    "Agreement Date": "What is the date of the contract?",
    "Effective Date": "What is the effective date?",
    "Expiration Date": "When does the contract expire?",
    "Governing Law": "Which law governs the agreement?",
    "Anti-Assignment": "Can the agreement be assigned to someone else?",
    "Cap On Liability": "How is liability limited?",
}
"""The questions that the set has for these fields, one of each."""

Outcome = Literal["exact", "holds", "overlaps", "wrong", "nothing", "rightly nothing", "wrongly something"]
RIGHT = ("exact", "holds", "rightly nothing")
_WAIT_S = 7200.0
_RUN = 8  # words in a row


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract: its text, and by field the clauses that lawyers marked; none where they found none."""

    title: str
    text: str
    clauses: Mapping[str, tuple[str, ...]]


def contracts_of(folder: Path, *, count: int) -> list[Contract]:
    """The first contracts of the set, by the hash of their titles, of which every field is known."""
    texts, titles = defaultdict[str, list[str]](list), dict[str, str]()
    for passage in _lines(folder / "corpus.jsonl"):
        titles[passage["_id"]] = passage["title"]
        texts[passage["title"]].append(passage["text"])
    judged = [line.split("\t")[:2] for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    of_question = {question: titles[passage] for question, passage in judged}
    clauses: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for question in _lines(folder / "queries.jsonl"):
        about, field = question["metadata"], question["metadata"]["category"]
        title = titles[about["context_id"]] if question["unanswerable"] else of_question[question["_id"]]
        found = () if question["unanswerable"] else tuple(question["answers"])
        clauses[title][field] = (*clauses[title].get(field, ()), *found)
    known = sorted((title for title in texts if set(FIELDS) <= set(clauses[title])), key=_hash)
    return [Contract(title, "\n\n".join(texts[title]), clauses[title]) for title in known[:count]]


def judged_cell(cell: Mapping[str, Any], clauses: Sequence[str]) -> Outcome:
    """Whether a cell tells what lawyers marked."""
    answer = cell["answer"]
    answered = cell["state"] == "answered"
    if not clauses:
        return "wrongly something" if answered else "rightly nothing"
    if answer is None or not answered:
        return "nothing"
    wanted = {_plain(clause) for clause in clauses}
    quotes = [_plain(one["cited_text"]) for one in answer["citations"]]
    said = [_plain(answer["value"] or ""), _plain(answer["answer"]), *quotes]
    if wanted & set(said):
        return "exact"
    if any(one and one in text for one in wanted for text in said):
        return "holds"
    return "overlaps" if any(_overlap(quote, one) for quote in quotes for one in wanted) else "wrong"


def measure(contracts: Sequence[Contract], lengths: Sequence[str], *, made: Path) -> dict[str, Any]:
    """Fill a table for each length of the answers by a real server, which is killed meanwhile, and judge its cells."""
    server, found = Server(made / "data", generator="extractive"), dict[str, Any]()
    try:
        server.start()
        ids = [_uploaded(server, contract) for contract in contracts]
        for length in lengths:
            found[length] = _filled(server, contracts, ids, length)
        server.stop()
    finally:
        server.close()
    return found


def _filled(server: Server, contracts: Sequence[Contract], ids: Sequence[str], length: str) -> dict[str, Any]:
    questions = [{"name": name, "question": question} for name, question in FIELDS.items()]
    body = {"questions": questions, "document_ids": ids, "length": length}
    table = server.http.post("/v1/tables", json=body).json()
    began, of = time.monotonic(), table["progress"]["total"]
    _until(server, table["id"], done=of // 3)
    server.kill()
    server.start()
    kept = _answers(server, table["id"])
    _until(server, table["id"], done=of)
    seconds, now = time.monotonic() - began, _answers(server, table["id"])
    assert all(now[place] == answer for place, answer in kept.items()), "a finished cell was asked again"
    cells = [
        _judged(contract, field, cell)
        for contract, row in zip(contracts, _rows(server, table["id"]), strict=True)
        for field, cell in zip(FIELDS, row["cells"], strict=True)
    ]
    usage = server.http.get(f"/v1/tables/{table['id']}", params={"limit": 1}).json()["usage"]
    sheet = server.http.get(f"/v1/tables/{table['id']}.csv").text
    return {"seconds": round(seconds, 1), "kept": len(kept), "usage": usage, "cells": cells, "csv": sheet}


def told(cells: Sequence[Mapping[str, Any]]) -> str:
    """The figures in words: of all cells, and of each field."""
    lines = []
    for name in ("all", *FIELDS):
        of = [cell for cell in cells if name in {"all", cell["field"]}]
        outcomes = Counter(cell["outcome"] for cell in of)
        marked = [cell for cell in of if cell["clauses"]]
        holding = sum(cell["outcome"] in RIGHT for cell in marked)
        wrong = sum(cell["confirmed"] and cell["outcome"] in {"wrong", "wrongly something"} for cell in of)
        confirmed = sum(cell["confirmed"] for cell in of)
        right = sum(outcomes[one] for one in RIGHT)
        lines += [
            f"{name}: exact or holding {right} of {len(of)} ({right / len(of):.2f})",
            f"  of those with a clause {holding} of {len(marked)}, and {outcomes['overlaps']} more overlap it",
            f"  confirmed {confirmed}, wrong and confirmed {wrong} ({wrong / len(of):.3f}); {dict(outcomes)}",
        ]
    return "\n".join(lines)


def _judged(contract: Contract, field: str, cell: Mapping[str, Any]) -> dict[str, Any]:
    answer, clauses = cell["answer"] or {}, contract.clauses[field]
    return {
        "contract": contract.title,
        "field": field,
        "state": cell["state"],
        "outcome": judged_cell(cell, clauses),
        "confirmed": cell["state"] == "answered" and bool(answer.get("verified")),
        "value": answer.get("value"),
        "answer": answer.get("answer"),
        "clauses": clauses,
        "error": cell["error"],
    }


def _uploaded(server: Server, contract: Contract) -> str:
    name = re.sub(r"[^A-Za-z0-9 ]", "", contract.title)[:80] + ".txt"
    document = server.upload(name, contract.text.encode(), wait=30)
    assert server.settled(document["id"], seconds=600)["status"] == "indexed", contract.title
    return str(document["id"])


def _until(server: Server, table_id: str, *, done: int) -> None:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        found = server.http.get(f"/v1/tables/{table_id}", params={"limit": 1}).json()
        progress = found["progress"]
        if progress["total"] - progress["waiting"] - progress["asking"] >= done:
            return
        assert found["state"] == "running", found
        time.sleep(1)
    raise AssertionError("the table is not finished in time")


def _rows(server: Server, table_id: str) -> list[dict[str, Any]]:
    found = server.http.get(f"/v1/tables/{table_id}", params={"limit": 500}).json()
    return list(found["rows"]["data"])


def _answers(server: Server, table_id: str) -> dict[tuple[int, int], Any]:
    """The finished cells by row and column."""
    return {
        (at, column): cell
        for at, row in enumerate(_rows(server, table_id))
        for column, cell in enumerate(row["cells"])
        if cell["state"] not in {"waiting", "asking"}
    }


def _plain(text: str) -> str:
    """The words of a text alone, in small letters: marks of footnotes, quotes and emphasis go."""
    return " ".join(re.findall(r"\w+", re.sub(r"\[\d+\]", " ", text).casefold()))


def _overlap(quote: str, clause: str) -> bool:
    here, there = (one.split() for one in (quote, clause))
    run = min(_RUN, len(here))
    runs = {tuple(here[at : at + run]) for at in range(len(here) - run + 1)}
    return run > 0 and any(tuple(there[at : at + run]) in runs for at in range(len(there) - run + 1))


def _hash(title: str) -> str:
    return hashlib.sha256(title.encode()).hexdigest()


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    """Print the figures; write them, every cell and the CSV as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.service.contract_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, help="the folder with train/cuad-clauses")
    parser.add_argument("--contracts", type=int, default=40, help="how many (40)")
    parser.add_argument("--lengths", default="short,normal", help="of the answers, a table for each")
    parser.add_argument("--out", type=Path, help="write all of it here, as JSON")
    chosen = parser.parse_args()
    contracts = contracts_of(chosen.data / "train" / "cuad-clauses", count=chosen.contracts)
    with tempfile.TemporaryDirectory(prefix="footnote-contracts-") as made:
        found = measure(contracts, chosen.lengths.split(","), made=Path(made))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    for length, table in found.items():
        print(f"\n## {length}\n{told(table['cells'])}")
        print(
            f"{len(table['cells'])} cells in {table['seconds']} s, {table['usage']['total_tokens']} tokens; "
            f"{table['kept']} were finished when the server was killed, and not asked again"
        )


if __name__ == "__main__":
    main()
