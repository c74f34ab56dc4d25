"""A protected file is uploaded at one process and read by another: its password reaches any worker, and nobody else."""

import signal

import sqlalchemy as sa

from app.db.tables.documents import job_secret
from tests.ingestion.pdf_file import locked_pdf
from tests.scale.member import HALT
from tests.scale.rig import Member, Rig, eventually

WORD = "open-sesame-hunter2"


def upload(member: Member, text: str, *, password: str = WORD) -> str:
    """The id of a PDF that opens with `WORD`."""
    file = "locked.pdf", locked_pdf([[text]], password=WORD)
    sent = member.server.http.post("/v1/documents", files={"file": file}, data={"password": password})
    assert sent.status_code == 202, sent.text
    assert WORD not in sent.text
    return str(sent.json()["id"])


def sealed(rig: Rig) -> list[bytes]:
    with rig.database.read() as connection:
        return list(connection.execute(sa.select(job_secret.c.sealed)).scalars())


def error(member: Member) -> str | None:
    """The code of the one document's failure."""
    (document,) = member.server.settled()
    return document["error"] and str(document["error"]["code"])


def test_a_worker_reads_a_protected_file_that_another_process_took(rig: Rig) -> None:
    api = rig.member("api").start()
    upload(api, "The keeper looks at every ship.")
    (row,) = sealed(rig)
    worker = rig.member().start()

    assert error(api) is None
    eventually(lambda: sealed(rig) == [], "its password is kept")
    assert WORD.encode() not in row
    for member in (api, worker):
        assert WORD not in member.server.log()
        for path in member.folder.rglob("*"):
            assert not path.is_file() or WORD.encode() not in path.read_bytes()


def test_where_the_worker_dies_the_next_one_opens_it_too(rig: Rig) -> None:
    api = rig.member("api").start()
    upload(api, f"The keeper says {HALT} to every ship.")
    killed = rig.member().start()
    killed.halted()
    killed.server.signal(signal.SIGKILL)
    other = rig.member().go_on().start()
    rig.pass_time(api, other)

    assert error(api) is None
    eventually(lambda: sealed(rig) == [], "its password is kept")


def test_a_wrong_password_is_forgotten_with_its_job(rig: Rig) -> None:
    api = rig.member("api").start()
    upload(api, "The keeper looks at every ship.", password="hunter3")
    rig.member().start()

    assert error(api) == "encrypted"
    eventually(lambda: sealed(rig) == [], "its password is kept")
