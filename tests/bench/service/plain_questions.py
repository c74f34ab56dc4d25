"""`python -m tests.bench.service.plain_questions FOLDER`: what somebody new asks of a file, and what they get.

Plain questions, written for this, about real PDFs (the folder is the one with `pdf/`), each asked of its own document
with the default models. Side by side on one data dir: what could not be verified kept as it is, quotes behind it, and
no language model at all. A pattern that the right answer matches says how good: it is generous to long answers.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.server import Server

QUESTIONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "fake-memo": (
        ("How many bottles of water were delivered?", r"20,000"),
        ("When were the laptops delivered?", r"January 23"),
        ("How many trucks were used?", r"3"),
    ),
    "ntsb_report_20071229X02007": (
        ("What was the probable cause of the accident?", r"misjudged clearance"),
        ("How old was the pilot?", r"85"),
        ("Where did the accident happen?", r"Tallahassee"),
        ("What was the weather like?", r"calm|ceiling|visibility"),
        ("What is the registration of the airplane?", r"N5921D"),
        ("What aircraft was it?", r"PA-22"),
    ),
    "nih_protocol_NCT06145295": (
        ("What is the aim of the study?", r"recovery identity"),
        ("Which guideline was used to design the prototype?", r"UDMIG|Universal Design"),
        ("Who are the participants?", r"ovarian cancer"),
    ),
    "fed_agency_GSA2022": (
        ("What is GSA's mission?", r"value|savings|real estate|acquisition"),
        ("What are GSA's four strategies?", r"real estate"),
    ),
    "amt_handbook_sample": (
        ("What is a Boots self-locking nut made of?", r"one piece|all-metal|metal"),
        ("What are the two types of self-locking nuts?", r"all-metal"),
        ("What does the spring do?", r"out of phase|locking force|keep"),
    ),
    "multi_page": (
        ("When was the typewriter patented?", r"1868"),
        ("Who invented the typewriter?", r"Sholes"),
        ("What was the IBM MT/ST?", r"Selectric|magnetic tape"),
        ("When did IBM introduce the electric typewriter?", r"1935"),
    ),
    "markitdown_RECEIPT-2024-TXN-98765_retail_purchase": (
        ("What was the total?", r"821.14"),
        ("Who was the cashier?", r"Emily"),
        ("What is the return policy?", r"30 days"),
        ("How was it paid?", r"Visa"),
        ("How many HDMI cables were bought?", r"2"),
    ),
    "layout-parser-paper-fast": (
        ("What is LayoutParser?", r"open-source|library|toolkit"),
        ("Who wrote the paper?", r"Shen"),
    ),
    "markitdown_REPAIR-2022-INV-001_multipage": (
        ("Who is the insured?", r"Gabriel|Diaz"),
        ("What is the grand total?", r"5,738"),
        ("What colour is the car?", r"White"),
        ("Who is the estimator?", r"Ellis"),
    ),
    "markitdown_movie-theater-booking-2024": (
        ("What are the booking dates?", r"12/20"),
        ("What is the commission?", r"10%"),
        ("Who is the primary contact?", r"Sarah"),
    ),
    "apple_10q_2022q3": (
        ("What were Apple's total net sales in the quarter?", r"82,959"),
        ("What was the net income for the quarter?", r"19,442"),
        ("Where is Apple's principal office?", r"Cupertino|Apple Park"),
        ("When did the quarter end?", r"June 25, 2022"),
    ),
    "redp5110_sampled": (("What is row and column access control?", r"access|row"),),
    "markitdown_test": (
        ("Why use multiple agents?", r"divergent|complex|factuality"),
        ("What are the three reasons for multi-agent conversations?", r"feedback"),
    ),
}

WAYS: Mapping[str, Mapping[str, str]] = {
    "kept": {"unconfirmed": "keep"},
    "quoted": {"unconfirmed": "quote"},
    "extractive": {"generator": "extractive"},
}


def told(body: Mapping[str, Any], pattern: str) -> dict[str, float]:
    """Of one answer, each 0 or 1: whether it answers, rightly, with a verified footnote, one that holds the answer."""
    footnotes = body["citations"]
    return {
        "answered": float(body["answered"]),
        "right": float(body["answered"] and re.search(pattern, body["answer"]) is not None),
        "with a verified footnote": float(any(one["verified"] for one in footnotes)),
        "a footnote holds the answer": float(any(re.search(pattern, one["cited_text"]) for one in footnotes)),
    }


def ask_all(server: Server, ids: Mapping[str, str], *, said: list[dict[str, Any]]) -> dict[str, float]:
    """The sums over all questions, and the median of the seconds an answer takes; `said` gets every answer."""
    sums: dict[str, float] = {}
    seconds = []
    for name, questions in QUESTIONS.items():
        for question, pattern in questions:
            response = server.http.post("/v1/ask", json={"question": question, "document_ids": [ids[name]]})
            assert response.status_code == 200, response.text
            body = response.json()
            found = told(body, pattern)
            for what, one in found.items():
                sums[what] = sums.get(what, 0.0) + one
            seconds.append(body["timings_ms"]["total"] / 1000)
            said.append({"document": name, "question": question, "answer": body["answer"], **found})
    return {**sums, "median seconds": round(sorted(seconds)[len(seconds) // 2], 2)}


def upload(server: Server, folder: Path) -> dict[str, str]:
    """The documents' ids, once they are indexed."""
    ids = {}
    for name in QUESTIONS:
        file = folder / "pdf" / f"{name}.pdf"
        response = server.http.post(
            "/v1/documents", files={"file": (file.name, file.read_bytes())}, data={"wait": "30"}, timeout=90
        )
        body = response.json()
        assert body["status"] == "indexed", body
        ids[name] = body["id"]
    return ids


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.plain_questions", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=Path, help="write every answer here, as JSON lines")
    chosen = parser.parse_args()
    figures: dict[str, Any] = {"questions": sum(map(len, QUESTIONS.values()))}
    said: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way, settings in WAYS.items():
            print(way, file=sys.stderr, flush=True)
            server = Server(Path(folder) / "data", **settings)
            try:
                server.start()
                ids = ids or upload(server, chosen.folder)
                mine: list[dict[str, Any]] = []
                figures[way] = ask_all(server, ids, said=mine)
                said += [{"way": way, **one} for one in mine]
            finally:
                server.stop()
    if chosen.answers is not None:
        lines = (json.dumps(one, ensure_ascii=False) for one in said)
        chosen.answers.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
