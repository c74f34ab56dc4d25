"""How many files a change touches: three are made in a copy of the code, and work there.

Tests, documents and generated types are not counted. docs/ARCHITECTURE.md names the files.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "ingestion", "retrieval", "generation", "migrations")
PAGE = "app/web/src/ask"


@dataclass(frozen=True)
class Change:
    """A change: in each file, what is put before a line that is there, or a new file; and how it is seen to work."""

    edits: Mapping[str, tuple[tuple[str, str], ...]]
    works: str
    files: int
    row: str


REASON = Change(
    edits={
        "app/answering/answers/parts.py": (
            ("    UNSURE = ", '    TOO_SHORT = "too_short", "the question has one word", True\n'),
        ),
        "app/answering/abstention.py": (
            (
                "    if selection is not None:\n        score, threshold",
                '    if " " not in question.text:\n'
                "        return Finished(reason=Reason.TOO_SHORT, abstention=evidence, text=refusal(question.text))\n",
            ),
        ),
        f"{PAGE}/strings.ts": (("      not_verified: ", '      too_short: "Ask in more than one word.",\n'),),
    },
    works="""
from dataclasses import replace
from app.answering.abstention import without_generation
from app.answering.answers.parts import RefusedPart
from app.api.schemas.answers import AnswerBody, DoneBody
from tests.app.answering.groundings import QUESTION, grounding_of

found = without_generation(grounding_of(replace(QUESTION, text="Ships?")), None)
assert found.reason == "too_short" and found.text == "I don't know."
assert isinstance(found.parts[0], RefusedPart) and found.parts[0].reason == "too_short"
for body in (AnswerBody, DoneBody):
    assert "`too_short`: the question has one word" in body.model_fields["reason"].description
""",
    files=4,
    row="a reason",
)
FIELD = Change(
    edits={
        "app/answering/answers/answer.py": (
            (
                "    @property\n    def uncited(",
                "    @property\n    def num_documents(self) -> int:\n"
                '        """How many documents it cites."""\n'
                "        return len({citation.document_id for citation in self.citations})\n\n",
            ),
        ),
        "app/api/schemas/answers.py": (
            (
                "    answers: float | None = Field(description=ANSWERS",
                '    num_documents: int = Field(description="How many documents the answer cites.", examples=[1])\n',
            ),
            ("            answers=answer.probability,", "            num_documents=answer.num_documents,\n"),
        ),
        f"{PAGE}/HowMade.tsx": (
            ("            {turn.ending?.model && ", '            {turn.ending?.num_documents} ·{" "}\n'),
        ),
    },
    works="""
import json
from app.api.answers import _last
from app.api.schemas.answers import AnswerBody, DoneBody
from tests.app.evaluation.test_answer_metrics import answer, citation

said = answer("Ships [1]. Ferries [2].", citation("doc_1", 6), citation("doc_2", 19))
assert AnswerBody.of(said).num_documents == 2
assert json.loads(_last(said).partition(b"data: ")[2])["num_documents"] == 2
assert DoneBody.model_fields["num_documents"].description == "How many documents the answer cites."
""",
    files=3,
    row="a field of an answer and its stream",
)
STRATEGY = Change(
    edits={
        "app/answering/echoing.py": (
            (
                "",
                '"""Answers a question with itself."""\n'
                "from app.answering.states.finished import Finished\n\n\n"
                "class Echoing:\n"
                "    def admit(self, question):\n        pass\n\n"
                "    def budget(self, question):\n        raise NotImplementedError\n\n"
                "    def begin(self, grounding, meter):\n"
                "        yield from ()\n"
                "        return Finished(reason=None, text=grounding.question.text)\n",
            ),
        ),
        "app/server/assembly.py": (
            ("    if settings.extractive:\n        return (quoting,)", "    return (Echoing(), quoting, generating)\n"),
            ("from app.answering.fitting ", "from app.answering.echoing import Echoing\n"),
        ),
    },
    works="""
from app.answering.states.strategy import first_fit
from app.server.assembly import strategies
from tests.app.answering.groundings import QUESTION, begun, grounding_of

chosen = first_fit(strategies(None, None, None, None), QUESTION)
assert begun(chosen.begin(grounding_of(QUESTION), None))[1].text == QUESTION.text
""",
    files=2,
    row="a strategy",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The code alone, without weights and what is built."""
    kept = shutil.ignore_patterns("node_modules", "dist", "__pycache__", "*.safetensors", "*.bin")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=kept)
    return tmp_path


@pytest.mark.parametrize("change", [REASON, FIELD, STRATEGY], ids=["reason", "stream field", "strategy"])
def test_a_change_touches_few_files(change: Change, copy: Path) -> None:
    for path, edits in change.edits.items():
        text = (copy / path).read_text(encoding="utf-8") if (copy / path).exists() else ""
        for before, added in edits:
            assert text == before == "" or text.count(before) == 1, (path, before)
            text = text.replace(before, added + before, 1) if before else added
        (copy / path).write_text(text, encoding="utf-8")

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (copy, ROOT)))}
    ran = subprocess.run(
        [sys.executable, "-c", change.works], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert len(change.edits) <= change.files


@pytest.mark.parametrize("change", [REASON, FIELD, STRATEGY], ids=["reason", "stream field", "strategy"])
def test_the_map_names_the_files_of_a_change(change: Change) -> None:
    rows = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    row = next(row for row in rows if row.startswith(f"| add {change.row} |"))

    assert {path for path in change.edits if (ROOT / path).exists() and f"`{path}`" not in row} == set()
