"""How many files a change touches: six are made in a copy of the code, and work there.

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

from app.db.migration import head_revision

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
            ("from app.answering.generating.cached_tokenizer ", "from app.answering.echoing import Echoing\n"),
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


COUNT = Change(
    edits={
        "app/db/tables/usage_columns.py": (
            (
                '    tok_system: Annotated[int, _count("Instructions."',
                '    output_rejected_tokens: Annotated[int, _count("Tokens that were drafted in vain.")] = 0\n',
            ),
        ),
        "migrations/versions/9000_rejected_tokens.py": (
            (
                "",
                '"""Tokens that were drafted in vain."""\n\n'
                "import sqlalchemy as sa\nfrom alembic import op\n\n"
                'revision = "9000"\ndown_revision = "NEWEST"\n'
                '_NAME = "output_rejected_tokens"\n_SUMS = ("15m", "day", "month", "facet")\n'
                '_TABLES = ("usage_event", "usage_adjustment", *(f"usage_rollup_{width}" for width in _SUMS))\n\n\n'
                "def upgrade():\n    for table in _TABLES:\n"
                '        column = sa.Column(_NAME, sa.BigInteger(), server_default="0", nullable=False)\n'
                "        op.add_column(table, column)\n\n\n"
                "def downgrade():\n    for table in _TABLES:\n"
                "        op.drop_column(table, _NAME)\n",
            ),
        ),
        "generation/types.py": (
            (
                "    @property\n    def generated_tokens(",
                "    @property\n    def rejected_tokens(self) -> int:\n"
                '        """How many tokens were drafted in vain."""\n'
                "        return self.drafted_tokens - self.accepted_tokens\n\n",
            ),
        ),
        "app/types.py": (
            (
                "    first_token_ms: float | None = None\n    total_ms: float | None = None\n\n    @property",
                "    rejected_tokens: int = 0\n",
            ),
            (
                '            "output_delivered_tokens": self.delivered_tokens,',
                '            "output_rejected_tokens": self.rejected_tokens,\n',
            ),
        ),
        "app/answering/metering/settler.py": (
            (
                "                    first_token_ms=completion",
                "                    rejected_tokens=completion.rejected_tokens,\n",
            ),
        ),
    },
    works="""
import tempfile
from unittest.mock import Mock
from zoneinfo import ZoneInfo
import sqlalchemy as sa
from app.answering.metering.settler import Settler
from app.api.schemas.usage import UsageResult
from app.api.schemas.usage_events import LineBody
from app.db.migration import current_revision, downgrade, upgrade
from app.db.session import Database
from app.usage.ledger.ledger import Ledger
from app.usage.reports.line_rows import lines_as_csv
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from app.usage.rollups.rollups import Rollups
from generation.types import Completion, FinishReason, Timings
from tests.app.usage.samples import reservation

database = Database.open(f"sqlite:///{tempfile.mkdtemp()}/footnote.db")
upgrade(database)
assert current_revision(database) == "9000"
ledger = Ledger(database, "boot_1", observers=(Rollups(ZoneInfo("UTC")),))
ledger.reserve(reservation())
ended = Completion(
    "req_1", "text", (1, 2, 3), FinishReason.STOP, 20, 0, 2, Timings(1.0, 2.0, 3.0), drafted_tokens=9, accepted_tokens=2
)
Settler(ledger, "req_1:1", Mock()).finish(ended)
lines = list(RawLedger(database).batches(tenant_id="t1", start=0, end=1 << 62, only=LineFilter()))
assert lines[0][0].measures.output_rejected_tokens == 7
head, row = b"".join(lines_as_csv(lines, ZoneInfo("UTC"))).decode().splitlines()
assert dict(zip(head.split(","), row.split(",")))["output_rejected_tokens"] == "7"
with database.read() as connection:
    for table in ("usage_rollup_15m", "usage_rollup_day", "usage_rollup_month"):
        assert connection.execute(sa.text(f"SELECT sum(output_rejected_tokens) FROM {table}")).scalar() == 7, table
for body in (UsageResult, LineBody):
    assert body.model_fields["output_rejected_tokens"].description == "Tokens that were drafted in vain."
downgrade(database, "-1")
""",
    files=5,
    row="a usage dimension",
)
ROLE = Change(
    edits={
        "app/types.py": (('    MEMBER = "member"', '    AUDITOR = "auditor"\n'),),
        "app/access/routes.py": (
            (
                '    RouteRule("GET", "/v1/admin/audit", _ADMIN',
                '    RouteRule("GET", "/v1/admin/audit", Role.AUDITOR, _TENANT),\n',
            ),
        ),
        "migrations/versions/9000_auditors.py": (
            (
                "",
                '"""A role that reads the audit log."""\n\nfrom alembic import op\n\n'
                'revision = "9000"\ndown_revision = "NEWEST"\n\n\n'
                "_ROLES = \"role IN ('admin', 'auditor', 'member', 'reader')\"\n"
                '_CHECKS = {"api_key": "ck_api_key_ck_api_key_role", "invitation": "ck_invitation_role",\n'
                '           "access_session": "ck_access_session_ck_access_session_role"}\n\n\n'
                "def upgrade():\n    for table, name in _CHECKS.items():\n"
                "        with op.batch_alter_table(table) as batch:\n"
                '            batch.drop_constraint(op.f(name), type_="check")\n'
                "            batch.create_check_constraint(op.f(name), _ROLES)\n\n\n"
                "def downgrade():\n    raise NotImplementedError\n",
            ),
        ),
        "app/web/src/admin/strings.ts": (
            ('    reader: "Reader",', '    auditor: "Auditor",\n'),
            (
                '    reader: "Reader: questions only"',
                '    auditor: "Auditor: documents, questions and the audit log",\n',
            ),
        ),
    },
    works="""
import tempfile
from app.access.routes import refusal
from app.db.keys import KeyRepository
from app.db.migration import upgrade
from app.db.session import Database
from app.types import Principal, Role

database = Database.open(f"sqlite:///{tempfile.mkdtemp()}/footnote.db")
upgrade(database)
key, secret = KeyRepository(database).create(user_id="ann", name="books", role=Role("auditor"))
assert KeyRepository(database).list(tenant_id=key.tenant_id)[0].role is Role.AUDITOR
def allowed(role, method, path):
    return refusal(Principal("t1", "ann", "key_1", role), method, path) is None
assert allowed(Role.AUDITOR, "GET", "/v1/admin/audit") and allowed(Role.AUDITOR, "POST", "/v1/documents")
assert not allowed(Role.MEMBER, "GET", "/v1/admin/audit") and not allowed(Role.AUDITOR, "GET", "/v1/admin/keys")
""",
    files=4,
    row="a role",
)
EMBEDDER = Change(
    edits={
        "retrieval/served_encoder.py": (
            (
                "",
                '"""Embeds texts at a server."""\n\n'
                "import numpy as np\n\nfrom retrieval.types import EmbedderInfo\n\n\n"
                "class ServedEncoder:\n"
                "    def __init__(self, url, model, tokenizer):\n"
                "        self.info = EmbedderInfo(model=model, revision=url, dim=8, max_tokens=64)\n"
                "        self.tokenizer = tokenizer\n\n"
                "    def count_tokens(self, text):\n        return len(text.split())\n\n"
                "    def count_query(self, text):\n        return len(text.split())\n\n"
                "    def count_documents(self, texts, *, counted):\n        return sum(counted)\n\n"
                "    def embed_documents(self, texts, *, on_batch=None):\n"
                "        return np.ones((len(texts), 8), np.float32) / np.float32(8**0.5)\n\n"
                "    def embed_query(self, text):\n        return self.embed_documents([text])[0]\n",
            ),
        ),
        "app/settings/models.py": (
            (
                "    generator: str = Field(",
                '    embedder_url: str = Field(default="", description="Server of embeddings.")\n',
            ),
        ),
        "app/models/loading.py": (
            (
                "    from retrieval.encoder import SentenceEncoder\n",
                "    if settings.embedder_url:\n"
                "        from retrieval.served_encoder import ServedEncoder\n\n"
                "        return ServedEncoder(settings.embedder_url, settings.embedder, None)\n",
            ),
        ),
    },
    works="""
import os, tempfile
from typer.testing import CliRunner
from app.cli.main import cli
from app.doctor.models import look_at_models
from app.doctor.report import Report
from app.models.loading import load_embedder, load_reader
from app.settings import Settings
from retrieval.ports import ChunkingEmbedder

environment = {
    "FOOTNOTE_MODELS_DIR": tempfile.mkdtemp(), "FOOTNOTE_DATA_DIR": tempfile.mkdtemp(),
    "FOOTNOTE_EMBEDDER": "acme/words", "FOOTNOTE_EMBEDDER_URL": "https://words.example.org",
    "FOOTNOTE_GENERATOR": "extractive", "FOOTNOTE_READER": "none",
}
os.environ.update(environment)
settings = Settings(_env_file=None)
embedder = load_embedder(settings)
assert isinstance(embedder, ChunkingEmbedder) and embedder.info.revision == "https://words.example.org"
assert load_reader(settings) is None
report = Report()
look_at_models(report, settings)
assert report.findings == [] and report.sections["models"]["embedder"] == "acme/words"
listed = CliRunner().invoke(cli, ["models", "list"], env=environment)
assert listed.exit_code == 0 and "In use: embedder acme/words" in listed.output, listed.output
""",
    files=3,
    row="an embedder provider",
)
CHANGES = pytest.mark.parametrize(
    "change",
    [REASON, FIELD, STRATEGY, COUNT, ROLE, EMBEDDER],
    ids=["reason", "stream field", "strategy", "usage dimension", "role", "embedder provider"],
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The code alone, without weights and what is built."""
    kept = shutil.ignore_patterns("node_modules", "dist", "__pycache__", "*.safetensors", "*.bin")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=kept)
    return tmp_path


@CHANGES
def test_a_change_touches_few_files(change: Change, copy: Path) -> None:
    for path, edits in change.edits.items():
        text = (copy / path).read_text(encoding="utf-8") if (copy / path).exists() else ""
        for before, added in edits:
            assert text == before == "" or text.count(before) == 1, (path, before)
            text = text.replace(before, added + before, 1) if before else added.replace("NEWEST", head_revision())
        (copy / path).write_text(text, encoding="utf-8")

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (copy, ROOT)))}
    ran = subprocess.run(
        [sys.executable, "-c", change.works], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert len(change.edits) <= change.files


@CHANGES
def test_the_map_names_the_files_of_a_change(change: Change) -> None:
    rows = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    row = next(row for row in rows if row.startswith(f"| add {change.row} |"))

    assert {path for path in change.edits if (ROOT / path).exists() and f"`{path}`" not in row} == set()
