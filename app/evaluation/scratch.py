"""The scratch application a run measures: its own data dir, one collection a question set, filled by the real pipeline.

A kept data dir is used again while the indexing settings are the same; a set whose corpus changed is
ingested anew.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import SecretStr

from app.errors import SetupError
from app.evaluation.types import QuestionSet, SetDocument
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import DEFAULT_TENANT, Collection, DocumentStatus, Principal, Role
from ingestion.errors import IngestionError

PRINCIPAL = Principal(DEFAULT_TENANT, "evaluation", "evaluation", Role.ADMIN)
_MANIFEST = "evaluation.json"
# The settings that determine chunks and vectors.
_INDEXING = ("embedder", "dtype", "embedder_dtype", "chunk_tokens", "chunk_overlap")
_POLL_SECONDS = 0.2
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Ingested:
    """A question set in the application.

    `document_ids` maps the set's ids of the searchable documents to the application's; `unread` says why others are
    missing, by the set's ids. `seconds` is the duration of ingestion, 0 for a kept collection.
    """

    collection_id: str
    document_ids: dict[str, str]
    unread: dict[str, str]
    seconds: float


@contextmanager
def scratch_application(settings: Settings, *, data_dir: Path) -> Iterator[State]:
    """An application with models over `data_dir`, which is made, or is one that an earlier run kept.

    The database is always SQLite inside it, whatever the settings say: a run must never touch the
    documents that are served.

    Raises:
        SetupError: The folder holds something else, or was made with other indexing settings.
    """
    claim(settings, data_dir)
    scratch = settings.model_copy(
        update={
            "data_dir": data_dir,
            "database_url": "",
            "admin_key": SecretStr(secrets.token_urlsafe(32)),  # set, so that none is printed
        }
    )
    with build(scratch) as state:
        yield state


def ingest(state: State, question_set: QuestionSet, *, on_progress: Callable[[int, int], None]) -> Ingested:
    """Uploads the corpus and waits until every document is indexed or failed.

    A document without any text is left out. `on_progress(done, total)` counts documents.
    """
    started = time.perf_counter()
    collection = _collection(state, question_set)
    # A neutral name: prompts show it, and it must neither help nor add tokens.
    names = {document_id: str(number) for number, document_id in enumerate(question_set.documents, start=1)}
    present, unread = _outcomes(state, collection.id)
    missing = [document for document in question_set.documents.values() if document.id not in present]
    told = 0.0
    for document in missing:
        if document.path is None and not document.text.strip() and not document.title.strip():
            unread[document.id] = "The document is empty."
            continue
        try:
            _upload(state, document, collection_id=collection.id, name=names[document.id])
        except IngestionError as error:
            unread[document.id] = str(error)
        if time.monotonic() > told + _POLL_SECONDS:  # polling is a query, as expensive as an upload
            on_progress(_done(state, question_set), len(question_set.documents))
            told = time.monotonic()
    while state.corpus.jobs.queued():
        on_progress(_done(state, question_set), len(question_set.documents))
        time.sleep(_POLL_SECONDS)
    while not _settled(state, collection.id):
        time.sleep(_POLL_SECONDS / 10)
    on_progress(len(question_set.documents), len(question_set.documents))
    present, failed = _outcomes(state, collection.id)
    seconds = time.perf_counter() - started if missing else 0.0
    return Ingested(collection.id, present, {**unread, **failed}, seconds)


def lead(document: SetDocument) -> str:
    """The text before a document's corpus text: its title as a Markdown heading, or nothing."""
    title = " ".join(document.title.split())
    return f"# {title}\n\n" if title else ""


def indexing_settings(settings: Settings) -> dict[str, str]:
    """The settings that determine chunks and vectors."""
    return {"version": version("footnote-rag"), **{name: str(getattr(settings, name)) for name in _INDEXING}}


def claim(settings: Settings, data_dir: Path) -> None:
    """Marks a new data directory as a scratch one, or checks that it was created with these settings."""
    manifest, wanted = data_dir / _MANIFEST, indexing_settings(settings)
    if not manifest.exists():
        if data_dir.exists() and any(data_dir.iterdir()):
            raise SetupError("The folder to keep holds something else; name a new or empty one.")
        data_dir.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps(wanted, indent=2) + "\n")
        return
    try:
        kept = json.loads(manifest.read_text())
    except ValueError:
        kept = None
    if not isinstance(kept, dict):
        raise SetupError("The folder to keep is damaged; name a new one.")
    changed = [name for name, value in wanted.items() if kept.get(name) != value]
    if changed:
        was = ", ".join(f"{name} {kept.get(name)}" for name in changed)
        raise SetupError(f"The kept folder was indexed with {was}; name a new one, or go back to these.")


def _collection(state: State, question_set: QuestionSet) -> Collection:
    """The set's collection; a collection with another corpus is deleted."""
    for found in state.corpus.collections.list(DEFAULT_TENANT):
        if found.name == question_set.name:
            if found.metadata.get("corpus") == question_set.fingerprint:
                return found
            state.corpus.intake.delete_collection(found.id, principal=PRINCIPAL, force=True)
    return state.corpus.collections.create(
        DEFAULT_TENANT, question_set.name, metadata={"corpus": question_set.fingerprint}
    )


def _upload(state: State, document: SetDocument, *, collection_id: str, name: str) -> None:
    head = lead(document)
    content = (head + document.text).encode() if document.path is None else document.path.read_bytes()
    received = state.corpus.files.spool.receive(
        [content], name=hashlib.sha256(document.id.encode()).hexdigest(), limit=max(1, len(content))
    )
    made_name = f"{name}.md" if head else f"{name}.txt"
    state.corpus.intake.accept(
        received,
        # People ask about their files by name, and the name tells some formats apart.
        filename=made_name if document.path is None else document.path.name,
        principal=PRINCIPAL,
        collection_id=collection_id,
        external_id=document.id,
        metadata={},
        on_duplicate="skip",
    )


def _done(state: State, question_set: QuestionSet) -> int:
    return max(0, len(question_set.documents) - state.corpus.jobs.queued())


def _settled(state: State, collection_id: str) -> bool:
    """Whether no document of the collection is being ingested."""
    waiting = (DocumentStatus.QUEUED, DocumentStatus.EXTRACTING, DocumentStatus.CHUNKING, DocumentStatus.EMBEDDING)
    return not any(
        state.corpus.documents.list(tenant_id=DEFAULT_TENANT, collection_id=collection_id, status=status, limit=1)[0]
        for status in waiting
    )


def _outcomes(state: State, collection_id: str) -> tuple[dict[str, str], dict[str, str]]:
    """The set's ids of the documents in the collection: the application's ids, and why the failed ones failed."""
    present: dict[str, str] = {}
    failed: dict[str, str] = {}
    cursor: str | None = None
    while True:
        page, cursor = state.corpus.documents.list(
            tenant_id=DEFAULT_TENANT, collection_id=collection_id, limit=_PAGE, cursor=cursor
        )
        for document in page:
            assert document.external_id is not None, "every document was uploaded under its id"
            if document.status is DocumentStatus.FAILED:
                failed[document.external_id] = document.error_detail or "The document failed."
            else:
                present[document.external_id] = document.id
        if cursor is None:
            return present, failed
