"""Workers beside each other that are killed or stopped: their jobs run again, nothing is lost, nothing is doubled."""

import random
import signal

import pytest
import sqlalchemy as sa

from app.db.presence import living
from app.db.tables.documents import job
from tests.faults.forked import KillPoint
from tests.scale.rig import Rig, eventually


def crashes(rig: Rig) -> list[int]:
    with rig.database.read() as connection:
        return list(connection.execute(sa.select(job.c.crashes).order_by(job.c.id)).scalars())


def test_the_jobs_of_a_killed_worker_run_again_elsewhere(rig: Rig) -> None:
    documents = [rig.upload(halts=True) for _ in range(6)]
    killed = rig.member().start()
    killed.halted()
    other = rig.member().go_on().start()

    killed.server.signal(signal.SIGKILL)
    assert killed.server.ended() == -signal.SIGKILL
    rig.pass_time(other, seconds=12)
    assert killed.boot_id in living(rig.database), "it may only be slow"
    rig.pass_time(other, seconds=6)
    rig.indexed()

    assert living(rig.database) == {"client", other.boot_id}
    assert {rig.status(each) for each in documents} == {"indexed"}
    rig.check()


def test_a_worker_that_wakes_after_its_burial_commits_nothing_and_ends(rig: Rig) -> None:
    created = rig.upload(halts=True)
    stopped = rig.member().start()
    stopped.halted()
    stopped.server.signal(signal.SIGSTOP)
    other = rig.member().go_on().start()
    rig.pass_time(other)
    rig.indexed()
    indexed = rig.library.get(created.id)

    stopped.go_on().server.signal(signal.SIGCONT)

    assert stopped.server.ended() == 0
    assert "process.buried" in stopped.server.log()
    assert rig.library.get(created.id) == indexed
    assert living(rig.database) == {"client", other.boot_id}
    rig.check()


@pytest.mark.parametrize(
    "point",
    [
        "app.db.jobs:JobRepository._claim_in",
        "app.db.publishing:commit_versions",
        pytest.param("app.usage.ledger.ledger:Ledger.reserve_in", marks=pytest.mark.exhaustive),
        pytest.param("app.db.job_queue:lock_running", marks=pytest.mark.exhaustive),
        pytest.param("app.usage.ledger.ledger:Ledger.settle_in", marks=pytest.mark.exhaustive),
    ],
)
def test_a_worker_that_is_stopped_inside_a_transaction_holds_up_nobody(rig: Rig, point: str) -> None:
    """Its locks are on the rows that the others need."""
    stopped = rig.member().go_on()
    stopped.start(stop_at=KillPoint(point, "return", sent=signal.SIGSTOP))
    for _ in range(3):
        rig.upload()
    stopped.stopped()
    other = rig.member().go_on().start()
    rig.pass_time(other)
    rig.indexed()
    rig.check()

    stopped.server.signal(signal.SIGCONT)

    assert stopped.server.ended() == 0
    assert "process.buried" in stopped.server.log()
    assert living(rig.database) == {"client", other.boot_id}
    rig.check()


def test_a_worker_that_was_stopped_for_a_moment_goes_on(rig: Rig) -> None:
    rig.upload(halts=True)
    stopped, other = rig.member().start(), rig.member().start()
    stopped.server.signal(signal.SIGSTOP)
    rig.pass_time(other, seconds=9)
    stopped.server.signal(signal.SIGCONT)
    rig.pass_time(stopped, other, seconds=30)

    assert living(rig.database) == {"client", stopped.boot_id, other.boot_id}
    for each in (stopped, other):
        each.go_on()
    rig.indexed()
    rig.check()


def test_a_worker_that_starts_takes_nothing_from_those_that_work(rig: Rig) -> None:
    for _ in range(4):
        rig.upload(halts=True)
    working = rig.member().start()
    working.halted()

    others = [rig.member().go_on().start() for _ in range(2)]
    rig.pass_time(working, *others, seconds=30)

    assert crashes(rig) == [0] * 4
    working.go_on()
    rig.indexed()
    rig.check()


def test_a_worker_that_ends_gives_its_jobs_away_at_once(rig: Rig) -> None:
    for _ in range(4):
        rig.upload()
    first = rig.member().go_on().start()
    first.server.stop()
    rig.upload()
    other = rig.member().go_on().start()

    rig.indexed()

    assert living(rig.database) == {"client", other.boot_id}
    assert crashes(rig) == [0] * 5
    rig.check()


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_nothing_acknowledged_is_lost_or_doubled_when_workers_are_killed_at_random(rig: Rig, kills: int) -> None:
    chance = random.Random(7)
    alive = [rig.member().go_on().start() for _ in range(2)]
    for _ in range(kills):
        for _ in range(chance.randrange(4, 12)):
            rig.upload()
        left = chance.randrange(5)
        eventually(lambda left=left: waiting(rig) <= left, "nothing is read")  # type: ignore[misc]
        killed = alive.pop(chance.randrange(2))
        killed.server.kill()
        alive.append(rig.member().go_on().start())
        rig.pass_time(*alive)
    rig.indexed()

    assert living(rig.database) == {"client", *(member.boot_id for member in alive)}
    rig.check()


def waiting(rig: Rig) -> int:
    """Jobs that have not ended."""
    with rig.database.read() as connection:
        ended = job.c.status.not_in(("done", "failed"))
        return connection.execute(sa.select(sa.func.count()).select_from(job).where(ended)).scalar_one()
