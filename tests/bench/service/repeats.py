"""`python -m tests.bench.service.repeats FOLDER`: whether a question asked again gets the same greedy answer.

Plain questions of `plain_questions`, each asked of its own document three times with the default models: the first time
its prompt is read, then most of it is remembered. Side by side with bfloat16 and with float32 weights.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.bench.service.plain_questions.asking import upload
from tests.bench.service.plain_questions.questions import documents_of, load, select
from tests.server import Server

DTYPES = ("bfloat16", "float32")
OUTPUT_TOKENS = 32
QUESTIONS = 42


def asked_again(server: Server, folder: Path) -> dict[str, int]:
    """How many answers are others the second time, and the third."""
    questions = select(load(), half="building", limit=QUESTIONS)
    ids = upload(server, folder, documents_of(questions))
    found = {"questions": len(questions), "second is not the first": 0, "third is not the second": 0}
    for question in questions:
        body = {
            "question": question.text,
            "document_ids": [ids[question.documents[0]]],
            "max_output_tokens": OUTPUT_TOKENS,
        }
        answers = []
        for _ in range(3):
            response = server.http.post("/v1/ask", json=body, timeout=90)
            assert response.status_code == 200, response.text
            answers.append(response.json()["answer"])
        first, second, third = answers
        found["second is not the first"] += first != second
        found["third is not the second"] += second != third
    return found


def main() -> None:
    """Ask with either precision and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of documents, with `pdf/` and so on")
    given = parser.parse_args()
    found = {}
    for dtype in DTYPES:
        print(dtype, file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="footnote-repeats-") as made:
            server = Server(Path(made) / "data", dtype=dtype, unconfirmed="keep", answers="generated")
            try:
                found[dtype] = asked_again(server.start(), given.folder)
            finally:
                server.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
