"""app.jobs: a job ends indexed, failed with its reason, or back in the queue, and its tokens are on the bill."""

import threading
import time

import pytest
from pydantic import SecretStr

from app.db.chunks import ChunkRepository
from ingestion.errors import Malformed, ParserCrashed
from tests.app.db.samples import EMBEDDER, Library
from tests.app.jobs.bench import Bench, eventually
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

LONG = "\n\n".join(f"Paragraph {n} says that revenue rose by {n} percent in the year {1900 + n}." for n in range(60))


@pytest.fixture
def bench(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)
    bench.worker.start()
    yield bench
    bench.extractor.gate.set()
    bench.worker.stop()


def test_a_document_becomes_visible_with_its_vectors_and_its_bill(bench):
    document = bench.until(bench.upload("The keeper counted ships. " * 60), "indexed")
    eventually(lambda: bench.ledger.usage(document.job_id)[0].status == "completed")
    eventually(lambda: len(bench.index) == document.chunks)
    (row,) = bench.ledger.usage(document.job_id)

    assert document.chunks > 1
    assert (row.operation, row.input_tokens) == ("embed_doc", document.embedding_tokens)


def test_a_file_is_opened_with_a_password_that_came_after_the_worker_was_made(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)
    document = bench.upload("Words behind a password.")
    bench.passwords.put(document.job_id, SecretStr("open sesame"))
    bench.worker.start()
    try:
        bench.until(document, "indexed")
    finally:
        bench.worker.stop()

    assert bench.extractor.passwords == ["open sesame"]


def test_a_document_of_many_batches_does_not_write_its_progress_for_each(bench):
    document = bench.upload("\n\n".join(f"Paragraph {n} says that revenue rose by {n} percent." for n in range(400)))

    bench.until(document, "indexed")

    chunks = len(ChunkRepository(bench.library.database).visible_keys())
    assert chunks >= 50, "each of them is a batch and a report"
    assert bench.jobs.written < chunks


def test_a_file_that_cannot_be_read_fails_with_its_reason_and_the_next_one_is_taken(bench):
    bench.extractor.error = Malformed("The file breaks off in the middle.")
    failed = bench.until(bench.upload("first"), "failed")
    bench.extractor.error = None
    bench.until(bench.upload("second document"), "indexed")

    assert (failed.error_code, failed.error_detail) == ("malformed", "The file breaks off in the middle.")
    assert bench.ledger.usage(failed.job_id) == (), "nothing was embedded, nothing is billed"


def test_a_bug_of_ours_fails_the_document_without_its_details_and_the_worker_lives(bench):
    bench.extractor.error = RuntimeError("secret detail")
    failed = bench.until(bench.upload("first"), "failed")

    assert failed.error_code == "internal-error"
    assert "secret" not in (failed.error_detail or "")
    assert bench.worker.alive()


def test_a_document_deleted_while_it_is_read_leaves_nothing(bench):
    bench.extractor.gate.clear()
    document = bench.upload("short lived")
    assert bench.extractor.started.wait(timeout=10)
    bench.library.documents.delete(document.id, tenant_id=bench.library.tenant_id)
    bench.extractor.gate.set()
    bench.until(bench.upload("another document"), "indexed")

    assert len(ChunkRepository(bench.library.database).visible_keys()) == 1


@pytest.mark.parametrize("error", [None, Malformed("The parser was stopped.")])
def test_stopping_puts_the_job_at_hand_back_into_the_queue(bench, error):
    bench.extractor.gate.clear()
    document = bench.upload("unfinished")
    assert bench.extractor.started.wait(timeout=10)
    bench.extractor.error = error
    stopping = threading.Thread(target=bench.worker.stop)
    stopping.start()
    time.sleep(0.1)
    bench.extractor.gate.set()
    stopping.join(timeout=20)

    assert bench.library.get(document.id).status == "queued"
    job = bench.library.jobs.get(document.job_id, tenant_id=bench.library.tenant_id)
    assert (job.status, job.attempts) == ("queued", 0)


def test_small_documents_are_embedded_together_and_each_is_whole(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)
    documents = [bench.upload(f"The keeper of lighthouse {number} counted ships.") for number in range(24)]
    bench.worker.start()
    try:
        indexed = [bench.until(document, "indexed") for document in documents]
    finally:
        bench.worker.stop()

    assert [document.chunks for document in indexed] == [1] * 24
    assert len(bench.embedder.calls) < 24
    assert max(len(texts) for texts in bench.embedder.calls) <= 4, "a call is no larger than a block"
    assert [sum(row.input_tokens for row in bench.bill(document)) for document in indexed] == [
        document.embedding_tokens for document in indexed
    ]
    assert len(bench.index) == 24


def test_the_failure_of_one_in_a_group_is_not_that_of_the_others(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)

    def refuse(texts):
        if any("poison" in text for text in texts):
            raise RuntimeError("secret detail")

    bench.embedder.before = refuse
    documents = [bench.upload(f"Record {number}{' poison' * (number == 2)}.") for number in range(4)]
    bench.worker.start()
    try:
        ended = [bench.until(document, "indexed", "failed") for document in documents]
    finally:
        bench.worker.stop()

    assert [document.status for document in ended] == ["indexed", "indexed", "failed", "indexed"]
    assert ended[2].error_code == "internal-error"
    assert [row.input_tokens for row in bench.bill(ended[2])] == [0], "what was not read is not billed"


def test_a_parser_that_died_once_has_another_try_and_then_the_file_fails(bench):
    bench.extractor.error = ParserCrashed("The parser broke down on this document; it may be damaged.")
    document = bench.upload("first")
    eventually(lambda: bench.library.get(document.id).next_attempt_at is not None)
    waiting = bench.library.get(document.id)
    failed = bench.until(document, "failed")

    assert (waiting.status, waiting.attempts, waiting.error_code) == ("queued", 1, "parser-crashed")
    assert (failed.attempts, failed.error_code, failed.next_attempt_at) == (2, "parser-crashed", None)


def test_a_large_document_gives_way_to_small_ones_between_its_blocks(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)
    begun, uploaded = threading.Event(), threading.Event()

    def wait_in_the_first_block(texts):
        if len(texts) == 4 and not begun.is_set():
            begun.set()
            assert uploaded.wait(timeout=30)
            eventually(lambda: bench.jobs.queued() == 0)

    bench.embedder.before = wait_in_the_first_block
    large = bench.upload(LONG)
    bench.worker.start()
    try:
        assert begun.wait(timeout=30)
        small = bench.upload("A small one.")
        uploaded.set()
        bench.until(small, "indexed")
        bench.until(large, "indexed")
    finally:
        bench.worker.stop()

    lengths = [len(texts) for texts in bench.embedder.calls]
    assert lengths.index(1) < len(lengths) - 1, "blocks of the large one came after it"


def test_a_job_cancelled_while_it_is_embedded_pays_for_what_was_read(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)
    blocks = []

    def cancel_at_the_third(texts):
        blocks.append(texts)
        if len(blocks) == 3:
            bench.jobs.cancel(document.job_id, tenant_id="t1")

    bench.embedder.before = cancel_at_the_third
    document = bench.upload(LONG)
    bench.worker.start()
    try:
        failed = bench.until(document, "failed")
        (row,) = bench.bill(document)
        eventually(lambda: len(blocks) == 3)
    finally:
        bench.worker.stop()

    assert failed.error_code == "cancelled"
    assert 0 < row.input_tokens <= 12 * EMBEDDER.max_tokens, "of the whole only the blocks that were read"
    assert len(ChunkRepository(bench.library.database).visible_keys()) == 0
    assert bench.jobs.checkpoints(document.job_id, generation=bench.library.generation) == {}


def test_a_worker_that_is_stopped_goes_on_with_the_blocks_it_had_not_finished(sqlite_database, tmp_path):
    whole = Bench(Library(sqlite_database), tmp_path / "whole")
    library = whole.library
    first = whole.upload(LONG, external_id="x")
    whole.worker.start()
    expected_tokens = whole.until(first, "indexed").embedding_tokens
    whole.worker.stop()
    expected = whole.vectors()
    library.documents.delete(first.id, tenant_id="t1")

    cut = Bench(library, tmp_path / "cut")
    stopping = threading.Event()

    def stop_at_the_fourth(texts):
        if len(cut.embedder.calls) == 3:
            stopping.set()
            eventually(lambda: cut.worker.stopping)

    cut.embedder.before = stop_at_the_fourth
    document = cut.upload(LONG, external_id="y")
    cut.worker.start()
    assert stopping.wait(timeout=30)
    cut.worker.stop()
    eventually(lambda: library.get(document.id).status == "queued")
    (released,) = cut.bill(document)

    resumed = Bench(library, tmp_path / "cut")
    resumed.worker.start()
    indexed = resumed.until(document, "indexed")
    resumed.worker.stop()

    assert resumed.vectors() == expected, "bit for bit"
    assert resumed.embedder.calls[0] != cut.embedder.calls[0]
    assert len(cut.embedder.calls) - 1 + len(resumed.embedder.calls) == len(whole.embedder.calls)
    assert released.input_tokens > 0
    assert sum(row.input_tokens for row in resumed.bill(document)) == indexed.embedding_tokens == expected_tokens
    assert indexed.attempts == 1, "being stopped is no attempt"
