"""app.usage.rollups.questions: every question that ended is counted once, with or without a model's call."""

import pytest
import sqlalchemy as sa

from app.db.answer_citations import AnswerCitationRepository, AnswerOutcome, AnswerResult
from app.db.session import Database
from app.db.tables.ledger import api_request
from app.usage.rollups.questions import RUNNING_SECONDS, question_counts, questions_of
from tests.app.usage.samples import Clock

HOUR = 3600
START = 1_763_600_000
EDGES = [at * 1_000_000 for at in (START, START + HOUR, START + 2 * HOUR)]
AS_OF = START + 2 * HOUR


class Asked:
    """Questions of a tenant, written as answers do."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock(START)
        self.outcomes = AnswerCitationRepository(database, clock=self.clock)

    def request(
        self, request_id: str, *, user: str = "ada", key: str = "k1", project: str = "", at: int = START, **other: str
    ) -> None:
        """A request whose model calls are on the ledger."""
        with self.database.write() as connection:
            connection.execute(
                sa.insert(api_request).values(
                    request_id=request_id,
                    tenant_id=other.get("tenant", "t1"),
                    user_id=user,
                    api_key_id=key,
                    project_id=project,
                    endpoint=other.get("endpoint", "ask"),
                    accepted_at=at * 1_000_000,
                    boot_id="b",
                )
            )

    def end(
        self, request_id: str, *, user: str = "ada", at: int = START, result: str = "answered", tenant: str = "t1"
    ) -> None:
        self.clock.now = at
        outcome = AnswerOutcome(
            request_id=request_id, tenant_id=tenant, user_id=user, endpoint="ask", result=AnswerResult(result)
        )
        self.outcomes.record(request_id, tenant_id=tenant, citations={}, outcome=outcome)

    def counts(self, *groups: str, **only: list[str]) -> object:
        with self.database.read() as connection:
            return question_counts(connection, EDGES, tenant_id="t1", groups=groups, only=only, as_of=AS_OF)


@pytest.fixture
def asked(database: Database) -> Asked:
    asked = Asked(database)
    asked.request("req_1", user="ada", key="k1", project="c1")
    asked.end("req_1", user="ada")
    asked.request("req_2", user="bob", key="k2")
    asked.end("req_2", user="bob", at=START + HOUR, result="refused")
    asked.end("req_3", user="bob", at=START + HOUR + 1)  # a greeting: no model was called
    asked.request("req_4", user="ada", key="k1", at=START + 5)  # a crash cut it off
    asked.request("req_5", user="ada", key="k1", at=AS_OF - RUNNING_SECONDS + 1)  # it may be running
    asked.request("req_6", user="ada", key="k1", endpoint="search")
    asked.request("req_7", user="eve", key="k9", tenant="t2")
    asked.end("req_7", user="eve", tenant="t2")
    asked.end("req_8", user="ada", at=START - 1)
    return asked


def test_every_question_that_ended_is_counted_in_its_bucket(asked: Asked) -> None:
    assert asked.counts() == {(0,): 2, (1,): 2}


def test_questions_are_counted_by_user_key_and_collection(asked: Asked) -> None:
    assert asked.counts("user_id") == {(0, "ada"): 2, (1, "bob"): 2}
    assert asked.counts("api_key_id") == {(0, "k1"): 2, (1, "k2"): 1, (1, ""): 1}
    assert asked.counts("project_id", "user_id") == {(0, "c1", "ada"): 1, (0, "", "ada"): 1, (1, "", "bob"): 2}


def test_questions_can_be_filtered(asked: Asked) -> None:
    assert asked.counts("user_id", user_id=["bob"]) == {(1, "bob"): 2}
    assert asked.counts(api_key_id=["k1"]) == {(0,): 2}


@pytest.mark.parametrize("dimension", ["model", "operation", "status"])
def test_by_what_a_model_call_has_alone_answers_are_not_counted(asked: Asked, dimension: str) -> None:
    assert asked.counts(dimension) is None
    assert asked.counts(**{dimension: ["x"]}) is None


def test_a_persons_own_questions_are_counted_since_each_moment(asked: Asked) -> None:
    with asked.database.read() as connection:
        since = [EDGES[1], EDGES[0], 0]
        ada = questions_of(connection, tenant_id="t1", user_id="ada", since=since)
        bob = questions_of(connection, tenant_id="t1", user_id="bob", since=since)

    assert (ada, bob) == ([0, 1, 2], [2, 2, 2])
