"""app.server.sharing: what becomes of the work of a process that died beside others, also if it wakes."""

import threading
from contextvars import copy_context
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db.asked_questions import AskedQuestionRepository
from app.db.checkpoints import Checkpoint
from app.db.conversations import ConversationRepository
from app.db.document_rows import ClaimedJob
from app.db.idempotency import IdempotencyRepository, KeptAnswer, note_effect
from app.db.jobs import MAX_CRASHES, JobRepository
from app.db.migration import upgrade
from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess, Presence, living, may_claim, not_living
from app.db.session import Database
from app.db.tables.ledger import process
from app.documents.ports import new_object_name
from app.errors import AnswerNotKept, RequestRunning, StoreUnavailable
from app.ids import new_id
from app.server.originals import document_files
from app.server.sharing import present, taking_over
from app.settings import Settings
from app.types import DocumentStatus, Operation, Principal, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from ingestion.types import Stage
from tests.app.db.samples import Library, extraction_of, vectors_of
from tests.app.db.test_presence import Ticks, pass_time
from tests.app.usage.samples import reservation
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.originals import held
from tests.postgres import empty_postgres

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

ANSWER = KeptAnswer(status=202, media_type="application/json", body=b"{}")


class Process:
    """One of several processes on a database, without its threads."""

    def __init__(self, database: Database, boot_id: str, ticks: Ticks, folder: Path) -> None:
        self.boot_id, self.database = boot_id, database
        self.jobs = JobRepository(database, may_claim=may_claim(boot_id))
        self.ledger = Ledger(database, boot_id)
        self.told = 0
        self.presence = Presence(
            database,
            boot_id=boot_id,
            role="all",
            version="1",
            release=taking_over(self.jobs, self.ledger),
            on_buried=self.buried,
            monotonic=ticks,
        )
        self.requests = IdempotencyRepository(database, OwnProcess(boot_id, not_living))
        self.asked = AskedQuestionRepository(database, OwnProcess(boot_id, not_living))
        rows = OriginalRepository(database, OwnProcess(boot_id, not_living))
        self.files = document_files(Settings(data_dir=folder, _env_file=None), rows)
        self.presence.begin()

    def buried(self) -> None:
        self.told += 1

    def claim(self) -> ClaimedJob:
        claimed = self.jobs.claim(self.boot_id)
        assert claimed is not None
        return claimed[0]

    def embeds(self, job: ClaimedJob, *, tokens: int, kept: int = 0) -> str:
        """Reserve the tokens of a job, and keep a block with some of them."""
        event_id = f"{job.id}:{new_id('run')}"
        self.ledger.reserve(reservation(event_id, operation=Operation.EMBED_DOC, input_tokens=tokens))
        if kept:
            block = Checkpoint(
                first_ordinal=0, digest="d", generation=1, event_id=event_id, tokens=kept, vectors=vectors_of(1)
            )
            assert self.jobs.keep(job, block, total=9)
        return event_id

    def commits(self, job: ClaimedJob) -> bool:
        extraction, passages = extraction_of([self.boot_id])
        return self.jobs.commit(
            job, extraction=extraction, passages=passages, vectors=vectors_of(1), generation=1, embedding_tokens=2
        ).written

    def has_its_effect(self, request: str) -> None:
        """The effect of a claimed request, in a context of its own."""

        def effect() -> None:
            self.requests.enter(request)
            with self.database.write() as connection:
                note_effect(connection)

        copy_context().run(effect)


class Several:
    """Three processes: the first will stand still, the second buries it, the third works on."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.library = Library(database)
        self.ticks = Ticks()
        self.folder = folder
        self.dead, self.burier, self.third = (self.start(f"boot-{number}") for number in (1, 2, 3))

    def start(self, boot_id: str) -> Process:
        return Process(self.library.database, boot_id, self.ticks, self.folder)

    def bury(self) -> None:
        self.burier.presence.turn()
        pass_time(self.ticks, self.burier.presence, self.third.presence, seconds=15)


@pytest.fixture
def several(database: Database, tmp_path: Path) -> Several:
    return Several(database, tmp_path)


def test_the_jobs_of_the_dead_run_again_and_those_of_the_living_go_on(several: Several) -> None:
    documents = [several.library.upload(f"content {number}") for number in range(2)]
    lost, held_on = several.dead.claim(), several.third.claim()
    assert [lost.document_id, held_on.document_id] == [document.id for document in documents]

    several.bury()

    assert [several.library.get(document.id).status for document in documents] == ["queued", "extracting"]
    again = several.burier.claim()
    assert again.id == lost.id
    assert several.third.commits(held_on)
    assert several.burier.commits(again)


def test_the_calls_of_the_dead_are_settled_at_their_checkpoints_and_those_of_the_living_stay_open(
    several: Several,
) -> None:
    for each, request in ((several.dead, "req_1"), (several.third, "req_2")):
        each.ledger.reserve(reservation(f"{request}:1"))
        each.ledger.checkpoint(f"{request}:1", 32)

    several.bury()

    (lost,), (running,) = several.burier.ledger.usage("req_1"), several.burier.ledger.usage("req_2")
    assert (lost.status, lost.output_tokens, lost.count_quality) == (UsageStatus.RECOVERED, 32, "checkpoint")
    assert running.status == UsageStatus.RESERVED
    done = Settlement(status=UsageStatus.COMPLETED, output_tokens=41)
    assert several.third.ledger.settle("req_2:1", done)
    assert not several.dead.ledger.settle("req_1:1", done), "it is on the bill once"


def test_a_start_takes_nothing_from_those_that_live(several: Several) -> None:
    document = several.library.upload()
    running = several.dead.claim()
    several.dead.ledger.reserve(reservation("req_1:1"))
    with several.dead.files.put(
        several.dead.files.spool.receive([b"b"], name="in_1", limit=1), name=new_object_name()
    ) as name:
        for number in range(MAX_CRASHES + 1):
            several.start(f"new-{number}").files.take_over()

        assert held(several.dead.files) == {name}
    assert several.library.get(document.id).status == DocumentStatus.EXTRACTING
    assert several.dead.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))
    assert several.dead.commits(running)


def test_what_one_that_was_alone_left_is_taken_over_by_a_start(several: Several) -> None:
    document = several.library.upload()
    assert JobRepository(several.library.database).claim("alone") is not None
    Ledger(several.library.database, "alone").reserve(reservation("req_1:1"))

    several.start("boot-4")

    assert several.library.get(document.id).status == DocumentStatus.QUEUED
    assert several.third.ledger.usage("req_1")[0].status == UsageStatus.RECOVERED


def test_one_that_wakes_changes_nothing_of_what_it_lost_claims_nothing_and_is_told(several: Several) -> None:
    document = several.library.upload()
    lost = several.dead.claim()
    several.bury()
    again = several.burier.claim()
    several.library.upload("another")

    assert several.dead.jobs.claim("boot-1") is None
    assert not several.dead.commits(lost)
    assert not several.dead.jobs.progress(lost, Stage.EMBEDDING, done=1, total=2)
    assert not several.dead.jobs.fail(lost, code="c", detail="d")
    assert not several.dead.presence.turn()
    several.dead.presence.end()

    assert several.dead.told == 1
    assert several.burier.commits(again)
    assert several.library.get(document.id).status == DocumentStatus.INDEXED


def test_the_dead_pays_for_the_blocks_it_kept_and_the_next_for_the_rest(several: Several) -> None:
    several.library.upload()
    lost = several.dead.claim()
    several.dead.embeds(lost, tokens=90, kept=50)
    several.bury()
    again = several.burier.claim()
    rest = several.burier.embeds(again, tokens=40)
    assert several.burier.ledger.settle(rest, Settlement(status=UsageStatus.COMPLETED, input_tokens=40))
    assert several.burier.commits(again)

    assert [event.measures.input_tokens for event in several.burier.ledger.usage(lost.id)] == [50, 40]


def test_the_blocks_of_a_document_that_is_given_up_are_paid_for(several: Several) -> None:
    """Its call is settled before its job fails, which drops what it kept."""
    several.library.upload()
    lost = several.dead.claim()
    several.dead.embeds(lost, tokens=90, kept=50)
    with several.library.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE job SET crashes = {MAX_CRASHES}")

    several.bury()

    assert several.library.get(lost.document_id).error_code == "gave-up"
    assert several.burier.ledger.usage(lost.id)[0].measures.input_tokens == 50


def test_a_request_is_free_once_its_process_is_buried_and_not_before(several: Several) -> None:
    for request in ("r1", "r2"):
        assert several.dead.requests.claim(request, tenant_id="t1", fingerprint="a") is None
    several.dead.has_its_effect("r2")
    for request in ("r1", "r2"):
        with pytest.raises(RequestRunning):
            several.third.requests.claim(request, tenant_id="t1", fingerprint="a")

    several.bury()

    assert several.third.requests.claim("r1", tenant_id="t1", fingerprint="a") is None
    with pytest.raises(AnswerNotKept):
        several.third.requests.claim("r2", tenant_id="t1", fingerprint="a")
    with pytest.raises(RequestRunning):
        several.dead.has_its_effect("r1")
    several.third.requests.keep("r1", ANSWER)
    assert several.burier.requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_an_upload_of_the_dead_is_deleted_and_can_be_named_no_more(several: Several) -> None:
    files, name = several.dead.files, new_object_name()
    spooled = files.spool.receive([b"text"], name="in_1", limit=4)
    before = several.library.upload("before")

    def name_it_late() -> None:
        with files.put(spooled, name=name):
            assert several.third.files.take_over() == 0, "its process lives"
            several.bury()
            assert several.third.files.take_over() == 1
            several.library.upload("text", original=name)

    with pytest.raises(StoreUnavailable, match="given up"):
        name_it_late()

    documents, _ = several.library.documents.list(tenant_id="t1", limit=9)
    assert [document.id for document in documents] == [before.id]
    assert held(files) == set()


def test_an_original_that_is_put_after_it_was_taken_over_is_deleted(
    several: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stands still in the middle of an upload goes on with it when it wakes."""
    files, name = several.dead.files, new_object_name()
    spooled = files.spool.receive([b"text"], name="in_1", limit=4)
    put = files.store.put

    def put_late(*what: object) -> None:
        several.bury()
        assert several.third.files.take_over() == 1
        put(*what)  # type: ignore[arg-type]

    monkeypatch.setattr(files.store, "put", put_late)
    with pytest.raises(StoreUnavailable, match="given up"), files.put(spooled, name=name):
        several.library.upload("text", original=name)

    assert held(files) == set()


def test_a_question_is_interrupted_once_its_process_is_buried(several: Several) -> None:
    conversations = ConversationRepository(several.library.database)
    conversation = conversations.create(Principal("t1", "u1", "k1", Role.MEMBER))
    several.dead.asked.begin("req_1", conversation_id=conversation.id, question="Who?")
    assert several.third.asked.interrupted(conversation.id) == ()

    several.bury()

    assert [each.request_id for each in several.third.asked.interrupted(conversation.id)] == ["req_1"]


def test_a_process_is_present_from_the_beginning_of_the_block_to_its_end() -> None:
    with empty_postgres() as url:
        database = Database.open(url)
        upgrade(database)
        released: list[str] = []

        def release(connection: sa.Connection) -> None:
            released.append(",".join(sorted(connection.execute(sa.select(process.c.boot_id)).scalars())))

        others = {"role": "worker", "version": "1", "release": release, "on_buried": released.clear}
        with present(url, boot_id="boot-1", **others), present(url, boot_id="boot-2", **others):  # type: ignore[arg-type]
            assert living(database) == {"boot-1", "boot-2"}
            assert {thread.name for thread in threading.enumerate()} >= {"footnote-presence"}
        assert living(database) == frozenset()
        assert released == ["boot-1", "boot-1,boot-2", "boot-1,boot-2", "boot-1,boot-2"]
        assert "footnote-presence" not in {thread.name for thread in threading.enumerate()}
        database.close()
