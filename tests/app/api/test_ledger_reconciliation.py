"""The route of the ledger's reconciliation, and where else its result shows."""

import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.db.tables.rollups import usage_rollup_15m
from app.server.state import State
from app.types import Settlement, UsageStatus
from tests.app.usage.samples import reservation


def spend(state: State) -> None:
    state.usage.ledger.reserve(reservation(tenant_id="default"))
    state.usage.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=7))


def test_the_reconciliation_of_a_consistent_ledger_is_ok(client: TestClient, state: State) -> None:
    spend(state)
    body = client.get("/v1/admin/usage/reconciliation").json()

    assert (body["object"], body["ok"]) == ("reconciliation", True)
    checks = {check["name"]: check for check in body["checks"]}
    assert checks["rollup_15m"] == {
        "name": "rollup_15m",
        "ok": True,
        "expected": 27,
        "found": 27,
        "detail": "1 sums compared.",
    }
    assert checks["engine_uncounted"]["expected"] is None, "there is no engine here"
    assert body == client.get("/v1/admin/usage/reconciliation", params={"start_time": 0}).json() | {
        "as_of": body["as_of"]
    }


def test_a_mismatch_shows_in_the_report_in_readyz_and_in_the_metrics(client: TestClient, state: State) -> None:
    assert client.get("/readyz").json()["checks"]["ledger"] == {"ok": None, "as_of": None, "mismatches": []}
    spend(state)
    with state.database.write() as connection:
        connection.execute(sa.update(usage_rollup_15m).values(num_calls=2))
    body = client.get("/v1/admin/usage/reconciliation").json()

    assert not body["ok"]
    assert [check["name"] for check in body["checks"] if not check["ok"]] == ["rollup_15m", "rollup_day"]
    ready = client.get("/readyz").json()
    assert ready["checks"]["ledger"] == {
        "ok": False,
        "as_of": body["as_of"],
        "mismatches": ["rollup_15m", "rollup_day"],
    }
    assert not [reason for reason in ready["reasons"] if "ledger" in reason], "it is shown, and still answers"
    counted = client.get("/metrics").text
    assert 'footnote_ledger_mismatches{check="rollup_15m"} 1.0' in counted
    assert 'footnote_ledger_mismatches{check="components"} 0.0' in counted


def test_a_start_that_calendars_do_not_reach_is_refused_and_the_last_one_is_not(client: TestClient) -> None:
    path, latest = "/v1/admin/usage/reconciliation", 32_503_680_000

    assert client.get(path, params={"start_time": latest}).json()["ok"]
    assert client.get(path, params={"start_time": latest + 1}).status_code == 422


def test_only_what_happened_after_the_start_is_looked_at(client: TestClient, state: State) -> None:
    spend(state)
    with state.database.write() as connection:
        connection.execute(sa.update(usage_rollup_15m).values(num_calls=2))
    later = client.get("/v1/admin/usage/reconciliation", params={"start_time": 4102444800}).json()

    assert later["ok"]


def test_a_start_that_is_no_time_is_422(client: TestClient) -> None:
    for start_time in ("-1", "yesterday", "1e99"):
        response = client.get("/v1/admin/usage/reconciliation", params={"start_time": start_time})
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
