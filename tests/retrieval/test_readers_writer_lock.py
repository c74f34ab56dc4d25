"""retrieval.readers_writer_lock lets readers share and a writer be alone."""

from threading import Barrier, Event, Thread

import pytest

from retrieval.readers_writer_lock import ReadersWriterLock

LONG = 10.0
SHORT = 0.05


def test_readers_hold_it_together() -> None:
    lock, together = ReadersWriterLock(), Barrier(2, timeout=LONG)

    def read() -> None:
        with lock.reading():
            together.wait()

    other = Thread(target=read)
    other.start()
    read()
    other.join()
    assert not together.broken


def test_a_writer_waits_for_readers_and_goes_before_new_ones() -> None:
    lock, order = ReadersWriterLock(), []
    written = Event()

    def write() -> None:
        with lock.writing():
            order.append("write")
            written.set()

    def read() -> None:
        with lock.reading():
            order.append("read")

    with lock.reading():
        writer = Thread(target=write)
        writer.start()
        assert not written.wait(SHORT)
        late_reader = Thread(target=read)
        late_reader.start()
        late_reader.join(SHORT)
        assert order == []
    writer.join()
    late_reader.join()
    assert order == ["write", "read"]


def test_writers_are_alone() -> None:
    lock, count = ReadersWriterLock(), 0

    def write() -> None:
        nonlocal count
        for _ in range(200):
            with lock.writing():
                before = count
                Event().wait(0)  # lets the others run
                count = before + 1

    writers = [Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert count == 800


def test_it_is_free_again_after_an_error() -> None:
    lock = ReadersWriterLock()
    for hold in (lock.reading, lock.writing):
        with pytest.raises(RuntimeError), hold():
            raise RuntimeError

    with lock.writing():
        pass
    with lock.reading():
        pass
