"""The documents report: tokens, cost and citations of each document, paged, with unread and deleted ones."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.answer_citations import AnswerCitationRepository
from app.db.session import Database
from app.db.tables.documents import collection, document, document_version, tenant
from app.db.tables.ledger import answer_citation
from app.errors import InvalidRequest
from app.usage.reports.documents_report import ORDERS, DocumentsQuery
from app.usage.reports.reports import UsageReports
from tests.app.usage.reports.lines import pico
from tests.app.usage.reports.test_costs_report import END, START, Bills, Call, calls
from tests.app.usage.samples import Clock
from tests.examples import examples

EXPLORE = settings(
    deadline=None, max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Cited:
    """An answer and its citations by document; `late` is seconds after the start of the range, `ours` the tenant."""

    documents: dict[str, int]
    late: int
    ours: bool

    @property
    def counts(self) -> bool:
        """Whether it is on the report."""
        return self.ours and 0 <= self.late < END - START


cited = st.builds(
    Cited,
    documents=st.dictionaries(st.sampled_from(["d1", "d2", "d4"]), st.integers(1, 5), min_size=1),
    late=st.sampled_from([-1, 0, 7, END - START - 1, END - START]),
    ours=st.sampled_from([True, True, True, False]),
)


def cite(database: Database, tenant_id: str, answers: list[Cited]) -> None:
    """Write down what answers cite, and nothing else."""
    with database.write() as connection:
        connection.execute(sa.delete(answer_citation))
    for number, answer in enumerate(answers):
        at = float(START + answer.late)
        AnswerCitationRepository(database, clock=lambda at=at: at).record(  # type: ignore[misc]
            f"req_{number}", tenant_id=tenant_id if answer.ours else "rival", citations=answer.documents
        )


def add_documents(database: Database, tenant_id: str, document_ids: list[str]) -> None:
    with database.write() as connection:
        connection.execute(sa.insert(tenant).values(id=tenant_id, created_at=0))
        connection.execute(
            sa.insert(collection).values(id=f"{tenant_id}c", tenant_id=tenant_id, name="c", metadata={}, created_at=0)
        )
        for document_id in document_ids:
            connection.execute(
                sa.insert(document).values(
                    id=document_id,
                    tenant_id=tenant_id,
                    collection_id=f"{tenant_id}c",
                    version=1,
                    live_version=1,
                    status="indexed",
                    done=1,
                    total=1,
                    job_id="j",
                    created_at=0,
                    updated_at=0,
                    metadata={},
                )
            )
            connection.execute(
                sa.insert(document_version).values(
                    document_id=document_id,
                    version=1,
                    filename=f"{document_id}.txt",
                    bytes=1,
                    sha256="x",
                    page_count=1,
                    chunk_count=1,
                    token_count=1,
                    embedding_tokens=1,
                    created_at=0,
                )
            )


def pages(reports: UsageReports, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = None
    while True:
        answer: dict[str, Any] = reports.documents(DocumentsQuery(page=page, **asked))
        assert len(answer["data"]) <= asked["limit"]
        found += answer["data"]
        page = answer["next_page"]
        assert answer["has_more"] == (page is not None)
        if page is None:
            return found


@EXPLORE
@given(
    made=st.lists(calls(), max_size=5),
    answers=st.lists(cited, max_size=5),
    only=st.sampled_from([None, True, False]),
    order_by=st.sampled_from(ORDERS),
    ascending=st.booleans(),
    limit=st.integers(1, 4),
)
def test_pages_hold_every_document_once_in_order(
    database: Database,
    made: list[Call],
    answers: list[Cited],
    only: bool | None,
    order_by: str,
    ascending: bool,
    limit: int,
) -> None:
    """Invariant 14, the same costs as the report of costs has, and the citations of the range."""
    bills = Bills(database, made)
    cite(database, bills.tenant, answers)
    asked: dict[str, Any] = {
        "tenant_id": bills.tenant,
        "start": START,
        "end": END,
        "order_by": order_by,
        "ascending": ascending,
    }

    found = pages(bills.reports, **asked, cited=only, limit=limit)

    counting = [answer.documents for answer in answers if answer.counts]
    mentioned = {name for call in made for name, tokens in call.documents.items() if tokens}
    mentioned |= {"d1" for call in made if call.operation == "embed_doc"}
    cited_ids = {name for documents in counting for name in documents}
    wanted = {None: mentioned | cited_ids, True: cited_ids, False: mentioned - cited_ids}[only]
    assert {result["document_id"] for result in found} == wanted
    assert found == pages(bills.reports, **asked, cited=only, limit=1000)
    values = [
        (pico(result["cost"]["value"]), result["context_tokens"] + result["ingest_tokens"], result["document_id"])
        if order_by == "cost"
        else (result[order_by], result["document_id"])
        for result in found
    ]
    assert values == sorted(set(values), reverse=not ascending)
    costs = {result["document_id"]: result["amount"]["value"] for result in bills.costs(group_by=["document_id"])}
    for result in found:
        mine = [call for call in made if call.documents.get(result["document_id"])]
        ingests = [call for call in made if call.operation == "embed_doc" and result["document_id"] == "d1"]
        times = [documents[result["document_id"]] for documents in counting if result["document_id"] in documents]
        assert (result["num_cited"], result["num_citations"]) == (len(times), sum(times))
        assert result["num_retrieved"] == len(mine)
        assert result["context_tokens"] == sum(call.documents[result["document_id"]] for call in mine)
        assert result["num_ingests"] == len(ingests)
        assert result["ingest_tokens"] == sum(call.input_tokens for call in ingests)
        assert pico(result["cost"]["value"]) == pico(costs.get(result["document_id"]))
        assert pico(result["cost"]["value"]) == pico(result["ingest_cost"]["value"]) + pico(
            result["context_cost"]["value"]
        )


def test_documents_nobody_read_are_there_and_deleted_ones_have_no_name(database: Database) -> None:
    """Totals are unchanged by a deletion: what was paid for stays on the report."""
    bills = Bills(database, [Call("chat", 100, 0, 1, {"input": 10**6, "output": 0}, {"gone": 30, "read": 50}, (), 0)])
    add_documents(database, bills.tenant, ["read", "unread"])

    found = pages(bills.reports, tenant_id=bills.tenant, start=START, end=END, limit=10)

    assert [(one["document_id"], one["name"], one["deleted"], one["num_retrieved"]) for one in found] == [
        ("read", "read.txt", False, 1),
        ("gone", "(deleted)", True, 1),
        ("unread", "unread.txt", False, 0),
    ]
    assert [one["collection_id"] for one in found] == [f"{bills.tenant}c", None, f"{bills.tenant}c"]
    assert [one["cost"]["value"] for one in found] == ["0.000050000000", "0.000030000000", "0.000000000000"]


def test_documents_nobody_cites_come_dearest_first(database: Database) -> None:
    """Read or not, and those that are gone: what was paid for them helped nobody."""
    prices = {"input": 10**6, "output": 0}
    shares = {"gone": 10, "cheap": 20, "dear": 30, "useful": 40}
    bills = Bills(database, [Call("chat", 100, 0, 1, prices, shares, (), 0)])
    add_documents(database, bills.tenant, ["cheap", "dear", "useful", "unread"])
    cite(database, bills.tenant, [Cited({"useful": 2}, 0, ours=True), Cited({"lost": 1}, 0, ours=True)])
    asked: dict[str, Any] = {"tenant_id": bills.tenant, "start": START, "end": END, "limit": 2}

    never = pages(bills.reports, **asked, cited=False)
    once = pages(bills.reports, **asked, cited=True, order_by="num_cited")

    assert [(one["document_id"], one["num_cited"], one["num_citations"]) for one in never] == [
        ("dear", 0, 0),
        ("cheap", 0, 0),
        ("gone", 0, 0),
        ("unread", 0, 0),
    ]
    assert [(one["document_id"], one["name"], one["num_cited"], one["num_citations"]) for one in once] == [
        ("useful", "useful.txt", 1, 2),
        ("lost", "(deleted)", 1, 1),
    ]


def test_what_has_no_price_is_not_said_to_be_free_because_nobody_cites_it(database: Database) -> None:
    bills = Bills(database, [Call("chat", 100, 0, 1, {}, {"d1": 30}, (), 0)])
    cite(database, bills.tenant, [Cited({"d2": 1}, 0, ours=True)])

    found = pages(bills.reports, tenant_id=bills.tenant, start=START, end=END, limit=10)

    assert {one["document_id"]: one["cost"]["value"] for one in found} == {"d1": None, "d2": "0.000000000000"}


def test_without_prices_documents_that_were_read_come_before_failed_ones(database: Database) -> None:
    """The cost of the first is not known, that of the others is nothing."""
    bills = Bills(database, [Call("chat", 100, 0, 1, {}, {"a_read": 30, "b_read": 50}, (), 0)])
    add_documents(database, bills.tenant, ["a_read", "b_read", "c_failed", "d_failed"])
    asked: dict[str, Any] = {"tenant_id": bills.tenant, "start": START, "end": END, "limit": 1}

    found = pages(bills.reports, **asked)

    assert [(one["document_id"], one["cost"]["value"]) for one in found] == [
        ("b_read", None),
        ("a_read", None),
        ("d_failed", "0.000000000000"),
        ("c_failed", "0.000000000000"),
    ]


def test_some_documents_can_be_asked_for(database: Database) -> None:
    bills = Bills(database, [Call("chat", 100, 0, 1, {}, {"d1": 30, "d2": 50}, (), 0)])

    found = pages(bills.reports, tenant_id=bills.tenant, start=START, end=END, document_ids=("d2",), limit=10)

    assert [one["document_id"] for one in found] == ["d2"]


def test_a_document_of_another_tenant_is_not_named(database: Database) -> None:
    bills = Bills(database, [Call("chat", 100, 0, 1, {}, {"theirs": 30}, (), 0)])
    add_documents(database, "other", ["theirs"])

    (one,) = pages(bills.reports, tenant_id=bills.tenant, start=START, end=END, limit=10)

    assert (one["name"], one["collection_id"]) == ("(deleted)", None)


def test_later_pages_keep_the_end_of_the_first(sqlite_database: Database) -> None:
    clock = Clock(END)
    bills = Bills(sqlite_database, [Call("chat", 100, 0, 1, {}, {"d1": 30, "d2": 50}, (), 0)])
    reports = UsageReports(sqlite_database, zone=ZoneInfo("UTC"), clock=clock)
    query: dict[str, Any] = {"tenant_id": bills.tenant, "start": START, "limit": 1}

    first: dict[str, Any] = reports.documents(DocumentsQuery(**query))
    clock.now += 5000
    second: dict[str, Any] = reports.documents(DocumentsQuery(**query, page=first["next_page"]))

    assert [first["end_time"], first["final"]] == [END + 1, False]
    assert [second["end_time"], second["final"], second["has_more"]] == [END + 1, True, False]


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"start": -1}, "start_time"),
        ({"start": 5, "end": 5}, "end_time"),
        ({"start": 5, "end": 10**17}, "end_time"),
        ({"start": 5, "order_by": "name"}, "order_by"),
        ({"start": 5, "limit": 0}, "limit"),
        ({"start": 5, "limit": 1001}, "limit"),
        ({"start": 5, "page": "x"}, "page"),
        ({"start": 5, "page": "WzEsMiwzLDRd"}, "page"),
    ],
)
def test_an_invalid_documents_query_is_refused_by_its_parameter_name(
    sqlite_database: Database, asked: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        UsageReports(sqlite_database).documents(DocumentsQuery(tenant_id="t1", **asked))
    assert caught.value.param == param
