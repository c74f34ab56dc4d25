"""Asks a running server questions of documents twice: stored, and sent in the message; compares answers and times.

    FOOTNOTE_ADMIN_KEY=… footnote serve &
    python -m tests.bench.service.sent_documents http://127.0.0.1:8000 KEY FOLDER --documents 6 --questions 10

FOLDER has a question set in BEIR's form (`corpus.jsonl` with titles, `queries.jsonl` with the passage of each question,
as SQuAD's). The passages of a title are one document. It is alone on the server while it is asked, where the server
was empty: word statistics are those of one document in both cases.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx


@dataclass(frozen=True, slots=True)
class Case:
    """A document and questions about it."""

    title: str
    text: str
    questions: list[str]


def cases(folder: Path, *, documents: int, questions: int) -> list[Case]:
    """The first documents of a set, each with questions spread over it."""
    passages: dict[str, dict[str, str]] = defaultdict(dict)
    for row in map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()):
        passages[row["title"]][row["_id"]] = row["text"]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    found = []
    for title, texts in list(passages.items())[:documents]:
        own = [row["text"] for row in asked if row["metadata"]["context_id"] in texts]
        found.append(Case(title, "\n\n".join(texts.values()), own[:: max(1, len(own) // questions)][:questions]))
    return found


class Server:
    """A running server, by its own API and Anthropic's."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=300)
        self._client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=300)

    def store(self, case: Case) -> str:
        """The id of the stored document, once it is indexed."""
        body = {"text": case.text, "filename": f"{case.title}.txt"}
        document = str(self._http.post("/v1/documents", json=body).raise_for_status().json()["id"])
        while (status := self._http.get(f"/v1/documents/{document}").json()["status"]) != "indexed":
            assert status != "failed", document
            time.sleep(0.2)
        return document

    def delete(self, document: str) -> None:
        """Delete it."""
        self._http.delete(f"/v1/documents/{document}").raise_for_status()

    def ask(self, question: str, sent: Case | None = None) -> tuple[Any, float]:
        """The answer with the characters of its footnotes, and the seconds that it took."""
        content: list[Any] = [{"type": "text", "text": question}]
        if sent is not None:
            source = {"type": "text", "media_type": "text/plain", "data": sent.text}
            document = {"type": "document", "source": source, "title": f"{sent.title}.txt"}
            content = [{**document, "citations": {"enabled": True}}, *content]
        began = time.perf_counter()
        turns: Any = [{"role": "user", "content": content}]
        message = self._client.messages.create(model="footnote", max_tokens=300, messages=turns)
        seconds = time.perf_counter() - began
        told = (message.model_extra or {})["footnote"]
        if sent is not None:
            for place in (
                place for block in message.content if block.type == "text" for place in block.citations or []
            ):
                assert isinstance(place, anthropic.types.CitationCharLocation)
                assert sent.text[place.start_char_index : place.end_char_index] == place.cited_text
        return (told["answer"], [(one["start_char"], one["end_char"]) for one in told["citations"]]), seconds


def main() -> None:
    """Print each question whose answers differ, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("key")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--questions", type=int, default=10)
    options = parser.parse_args()
    server, same, asked = Server(options.url, options.key), 0, 0
    times: dict[str, list[float]] = {"stored": [], "sent": []}
    for case in cases(options.folder, documents=options.documents, questions=options.questions):
        document = server.store(case)
        for question in [*case.questions, "What is this document about?"]:
            stored, seconds = server.ask(question)
            times["stored"].append(seconds)
            answer, seconds = server.ask(question, case)
            times["sent"].append(seconds)
            asked, same = asked + 1, same + (stored == answer)
            if stored != answer:
                print(f"{case.title}: {question}\n  stored {stored}\n  sent   {answer}")
        server.delete(document)
    print(f"{same} of {asked} answers are the same, with the same characters")
    for name, each in times.items():
        print(f"{name}: median {statistics.median(each):.2f} s, longest {max(each):.2f} s")


if __name__ == "__main__":
    main()
