"""Admission over HTTP: rate limits, concurrency limits and the queue; refusals come before any work."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.admission.address_rate import AddressRate
from app.admission.admission import Admission
from app.admission.failed_logins import FailedLogins
from app.admission.fair_queue import FairQueue
from app.admission.quotas import UNLIMITED, OverriddenQuotas, Quota
from app.admission.rates import Rates
from app.server.state import State
from app.types import Operation, Role
from generation.engine import LocalEngine
from tests.app.api.caller import QUESTION, Caller, slow_engine
from tests.app.api.credentials import key_of
from tests.app.api.unhurried import Finding, Service, served
from tests.app.server.stations import state_with
from tests.generation.fakes import Gate, wait_until


@contextmanager
def admitting(
    state: State,
    engine: LocalEngine,
    *,
    key: Quota = UNLIMITED,
    tenant: Quota = UNLIMITED,
    seats: int = 20,
    turns: int = 4,
    waiting: int = 64,
    finding: Finding | None = None,
) -> Iterator[tuple[Service, Admission]]:
    """Serve with admission of these sizes, over an engine that is closed at the end; afterwards nothing is held."""
    quotas = OverriddenQuotas(state.limits.quotas.all, key=key, tenant=tenant)
    admission = Admission(
        quotas=quotas,
        rates=Rates(quotas),
        failed_logins=FailedLogins(3),
        public_rate=AddressRate(6000, name="public-requests"),
        generation_slots=FairQueue(seats, waiting=waiting),
        preparation_slots=FairQueue(turns, waiting=waiting),
    )
    try:
        with served(state_with(state, admission=admission), engine, search=finding) as service:
            yield service, admission
            wait_until(lambda: not admission.generation_slots.held and not admission.preparation_slots.held)
            for queue in (admission.generation_slots, admission.preparation_slots):
                assert queue.waiting == 0
                queue.check_integrity()
    finally:
        engine.close()
        quotas.close()


def test_e11_above_its_limit_a_key_is_429_and_told_when_to_come_back_and_others_are_not(state):
    with admitting(state, slow_engine(lambda plan: None), key=Quota(requests_per_minute=2)) as (service, _):
        fine = [service.http.post("/v1/search", json={"query": "x"}) for _ in range(2)]
        refused = service.http.post("/v1/search", json={"query": "x"})
        rival = service.http.post("/v1/search", json={"query": "x"}, headers=key_of(state, Role.READER, tenant="rival"))
        listed = service.http.get("/v1/documents")
    problem = refused.json()

    assert [response.status_code for response in fine] == [200, 200]
    assert fine[0].headers["ratelimit"].startswith('"key-requests";r=1;t=')
    assert fine[0].headers["ratelimit-policy"] == '"key-requests";q=2;w=60'
    assert fine[1].headers["x-ratelimit-remaining-requests"] == "0"
    assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
    assert problem["type"] == "urn:footnote:problem:rate-limited"
    assert (problem["limit_name"], problem["limit"], problem["window_s"]) == ("key-requests", 2, 60)
    assert 55 <= int(refused.headers["retry-after"]) == problem["retry_after_s"] <= 61
    assert refused.headers["ratelimit"].startswith('"key-requests";r=0;t=')
    assert rival.status_code == 200, "another tenant is not concerned"
    assert listed.status_code == 200, "looking things up is not limited"


def test_e11_openais_clients_find_their_error_and_headers(state):
    body = {"model": "footnote", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    with admitting(state, slow_engine(lambda plan: None), tenant=Quota(requests_per_minute=1)) as (service, _):
        answered = service.http.post("/v1/chat/completions", json=body)
        refused = service.http.post("/v1/chat/completions", json=body)

    assert answered.headers["x-ratelimit-limit-requests"] == "1"
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert refused.headers["x-ratelimit-reset-requests"].endswith("s")


def test_e11_an_address_that_guesses_keys_is_refused_and_a_good_key_from_another_is_not(state):
    with admitting(state, slow_engine(lambda plan: None)) as (service, _):

        def call(address: str, key: str | None = None) -> Caller:
            guess = {"authorization": f"Bearer {key}"} if key is not None else {}
            caller = Caller(service, path="/v1/models", body=b"", headers=guess, address=address)
            caller.get()
            return caller

        assert call("192.0.2.1").status == 200
        statuses = [call("192.0.2.1", f"fn_guess_{number}").status for number in range(5)]
        refused = call("192.0.2.1", "fn_guess_again")
        here, there = call("192.0.2.1"), call("192.0.2.2")

    assert statuses == [401, 401, 401, 429, 429]
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    assert refused.headers["ratelimit-policy"] == '"failed-logins";q=3;w=60'
    assert (here.status, there.status) == (200, 200)


def test_no_key_and_an_ended_session_are_no_guesses(state):
    with admitting(state, slow_engine(lambda plan: None)) as (service, _):
        del service.http.headers["Authorization"]
        statuses = {service.http.get("/v1/documents").status_code for _ in range(8)}

    assert statuses == {401}


def test_c4_of_a_burst_exactly_the_free_slots_come_in(state):
    gate = Gate()
    engine = slow_engine(gate, max_running=1)
    with admitting(state, engine, seats=2, waiting=3) as (service, admission):
        first = Caller(service, max_output_tokens=2)
        tasks = [service.portal.start_task_soon(first)]
        wait_until(lambda: engine.stats().running == 1)
        burst = [Caller(service, max_output_tokens=2) for _ in range(12)]
        tasks += [service.portal.start_task_soon(caller) for caller in burst]
        wait_until(lambda: sum(caller.status == 503 for caller in burst) == 12 - 1 - 3)
        assert (admission.generation_slots.held, admission.generation_slots.waiting) == (2, 3)
        gate.free()
        for task in tasks:
            task.result(20)

    assert Counter(caller.status for caller in burst) == {200: 4, 503: 8}


def test_c4_of_a_burst_at_a_keys_limit_exactly_the_free_ones_come_in(state):
    gate = Gate()
    with admitting(state, slow_engine(gate), key=Quota(concurrent_requests=3)) as (service, _):
        burst = [Caller(service, max_output_tokens=2) for _ in range(10)]
        tasks = [service.portal.start_task_soon(caller) for caller in burst]
        wait_until(lambda: sum(caller.status == 429 for caller in burst) == 7)
        gate.free()
        for task in tasks:
            task.result(20)
        again = service.http.post("/v1/ask", json={**QUESTION, "max_output_tokens": 1})

    assert Counter(caller.status for caller in burst) == {200: 3, 429: 7}
    assert again.status_code == 200, "those that ended are not counted any more"


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/chat/completions"])
def test_c3_a_full_server_says_so_before_it_reads_and_soon(state, path):
    gate = Gate()
    with admitting(state, slow_engine(gate, max_running=1), seats=1, waiting=0) as (service, admission):
        holder = Caller(service, max_output_tokens=2)
        holding = service.portal.start_task_soon(holder)
        wait_until(lambda: admission.generation_slots.held == 1)
        refused, took = [], []
        for _ in range(50):
            caller = Caller(service, path=path, body=b"{ no JSON")
            began = time.perf_counter()
            service.portal.call(caller)
            took.append(time.perf_counter() - began)
            refused.append(caller)
        gate.free()
        holding.result(20)

    assert {caller.status for caller in refused} == {503}
    assert {caller.reads for caller in refused} == {0}, "nobody asked for the body"
    assert all(int(caller.headers["retry-after"]) >= 1 for caller in refused)
    assert refused[0].answer["type"] == "urn:footnote:problem:server-full"
    assert sorted(took)[45] <= 0.05


def test_a_tenants_burst_does_not_make_another_wait_or_be_refused(state):
    gate = Gate()
    engine = slow_engine(gate, max_running=1)
    with admitting(state, engine, seats=1, waiting=4) as (service, admission):
        flood = [Caller(service, max_output_tokens=1) for _ in range(12)]
        tasks = [service.portal.start_task_soon(caller) for caller in flood]
        wait_until(lambda: admission.generation_slots.waiting == 4 and engine.stats().running == 1)
        ended: list[str] = []
        rival = Caller(service, headers=key_of(state, Role.READER, tenant="rival"), max_output_tokens=1)
        asking = service.portal.start_task_soon(rival)
        asking.add_done_callback(lambda _: ended.append("rival"))
        wait_until(lambda: sum(caller.status == 503 for caller in flood) == 8)
        for task, caller in zip(tasks, flood, strict=True):
            if caller.status is None:
                task.add_done_callback(lambda _: ended.append("flood"))
        gate.free()
        for task in (*tasks, asking):
            task.result(20)

    assert rival.status == 200
    assert "rival" in ended[:2], "after the one that ran, before those that waited"


@pytest.mark.parametrize("body", [{"question": "why " * 3000}, {**QUESTION, "max_output_tokens": 9000}])
def test_c9_what_does_not_fit_the_window_is_refused_with_the_counts_before_anything_is_done(state, body):
    engine = slow_engine(lambda plan: None)
    with admitting(state, engine) as (service, _):
        refused = service.http.post("/v1/ask", json=body)
        problem = refused.json()

        assert (refused.status_code, problem["type"]) == (422, "urn:footnote:problem:context-length-exceeded")
        assert problem["prompt_tokens"] + problem["max_output_tokens"] > problem["context_window"] == 9000
        assert engine.stats().requests == 0
        assert service.ledger.usage(refused.headers["x-request-id"]) == ()


def admission_seconds(service: Service) -> tuple[float, float]:
    """How many requests were at that station, and how long all of them together."""
    page = service.http.get("/metrics").text
    found = [
        re.search(rf'footnote_station_seconds_{end}{{station="admission"}} (\S+)', page) for end in ("count", "sum")
    ]
    count, seconds = [float(match[1]) if match else 0.0 for match in found]
    return count, seconds


def test_the_wait_for_a_seat_is_a_station_of_its_own(state):
    gate = Gate()
    with admitting(state, slow_engine(gate, max_running=1), seats=1) as (service, admission):
        tasks = [service.portal.start_task_soon(Caller(service, max_output_tokens=1))]
        wait_until(lambda: admission.generation_slots.held == 1)
        before = admission_seconds(service)
        tasks.append(service.portal.start_task_soon(Caller(service, max_output_tokens=1)))
        wait_until(lambda: admission.generation_slots.waiting == 1)
        time.sleep(0.05)
        gate.free()
        for task in tasks:
            task.result(20)
        after = admission_seconds(service)

    assert after[0] - before[0] == 1
    assert 0.05 <= after[1] - before[1] < 20


def test_c10_waiting_in_the_line_counts_towards_the_deadline(state):
    gate = Gate()
    with admitting(state, slow_engine(gate, max_running=1), seats=1) as (service, admission):
        holding = service.portal.start_task_soon(Caller(service, max_output_tokens=1))
        wait_until(lambda: admission.generation_slots.held == 1)
        late = service.http.post("/v1/ask", json=QUESTION, headers={"Request-Timeout": "0.2"})
        gate.free()
        holding.result(20)

    assert (late.status_code, late.json()["type"]) == (504, "urn:footnote:problem:deadline")
    assert service.ledger.usage(late.headers["x-request-id"]) == (), "nothing was done for it"


@pytest.mark.parametrize("seconds", ["", "0", "-1", "nan", "inf", "1e999", "soon"])
def test_a_timeout_that_is_no_time_is_422_by_name(client, seconds):
    response = client.post("/v1/ask", json=QUESTION, headers={"Request-Timeout": seconds})

    assert (response.status_code, response.json()["param"]) == (422, "Request-Timeout")


def test_c1_who_hangs_up_in_the_line_is_gone_from_it_and_nothing_is_billed(state):
    gate = Gate()
    with admitting(state, slow_engine(gate, max_running=1), seats=1) as (service, admission):
        holding = service.portal.start_task_soon(Caller(service, max_output_tokens=1))
        wait_until(lambda: admission.generation_slots.held == 1)
        leaver = Caller(service)
        waiting = service.portal.start_task_soon(leaver)
        wait_until(lambda: admission.generation_slots.waiting == 1)
        began = time.perf_counter()
        leaver.hang_up()
        waiting.result(10)
        took = time.perf_counter() - began
        left = admission.generation_slots.waiting
        gate.free()
        holding.result(20)

    assert left == 0
    assert took <= 0.25
    assert leaver.status is None
    assert service.ledger.usage(leaver.request_id) == ()


def test_a_thread_whose_reader_left_keeps_its_turn_until_it_is_done(state):
    """Else whoever asks and hangs up, again and again, fills the executor with searches nobody waits for."""
    released = threading.Event()
    finding = Finding(lambda: released.wait(30))
    with admitting(state, slow_engine(lambda plan: None), turns=1, finding=finding) as (service, admission):
        leaver = Caller(service)
        leaving = service.portal.start_task_soon(leaver)
        wait_until(lambda: admission.preparation_slots.held == 1)
        leaver.hang_up()
        leaving.result(10)
        held = admission.preparation_slots.held, admission.generation_slots.held
        follower = Caller(service, max_output_tokens=1)
        following = service.portal.start_task_soon(follower)
        wait_until(lambda: admission.preparation_slots.waiting == 1)
        released.set()
        following.result(20)

    assert held == (1, 0), "the seat is free again, the thread is not"
    assert follower.status == 200


def test_c13_a_retry_after_a_timeout_does_not_generate_again(state):
    gate = Gate()
    engine = slow_engine(gate)
    with admitting(state, engine) as (service, _):
        keyed = {"Idempotency-Key": "once", "Content-Type": "application/json"}
        first = Caller(service, headers=keyed, max_output_tokens=3)
        asking = service.portal.start_task_soon(first)
        wait_until(lambda: engine.stats().running == 1)
        first.hang_up()
        body = json.dumps({**QUESTION, "max_output_tokens": 3})
        early = service.http.post("/v1/ask", content=body, headers=keyed)
        gate.free()
        asking.result(20)
        again = service.http.post("/v1/ask", content=body, headers=keyed)
        requests = engine.stats().requests

    assert (early.status_code, early.json()["type"]) == (409, "urn:footnote:problem:request-running")
    assert int(early.headers["retry-after"]) >= 1
    assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")
    assert again.json()["id"] == first.request_id
    assert requests == 1
    (row,) = service.rows(first.request_id, Operation.CHAT)
    assert (row.status, row.output_tokens) == ("completed", 3)


NUMBERS: st.SearchStrategy[object] = st.one_of(
    st.integers(),
    st.integers(min_value=10**9),
    st.sampled_from([-1, 0, 1e308, -1e308, 2**63, 10**30, "NaN", "1e308", "8", "", None, True, [], {}]),
    st.floats(allow_nan=True, allow_infinity=True),
)
ASK = ("top_k", "max_output_tokens", "max_context_tokens", "temperature", "top_p", "seed", "abstention_threshold")
CHAT = ("n", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "top_logprobs", "presence_penalty")


FIELDS = [*(("ask", name) for name in ASK), *(("chat", name) for name in CHAT), ("search", "top_k")]


@given(field=st.sampled_from(FIELDS), value=NUMBERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_c11_numbers_of_any_kind_are_refused_by_name_or_are_fine_and_never_a_500(numbers, field, value):
    route, name = field
    bodies: dict[str, dict[str, object]] = {
        "ask": {**QUESTION, "dry_run": True},
        "search": {"query": "x"},
        "chat": {"model": "footnote", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2},
    }
    path = {"ask": "/v1/ask", "search": "/v1/search", "chat": "/v1/chat/completions"}[route]
    text = json.dumps(
        {**bodies[route], name: value}
    )  # NaN and Infinity as Python and JavaScript's old parsers write them
    response = numbers.post(path, content=text, headers={"Content-Type": "application/json"})

    assert response.status_code in {200, 400, 422}, response.text
    if response.status_code != 200:
        assert response.headers["content-type"] == "application/problem+json"
    if isinstance(value, str | list | dict) or value != value or value in {float("inf"), float("-inf")}:
        assert response.status_code in {400, 422}


@pytest.fixture
def numbers(state: State) -> Iterator[TestClient]:
    with admitting(state, slow_engine(lambda plan: None)) as (service, _):
        yield service.http


def test_c11_a_history_without_end_is_refused(numbers):
    message = {"role": "user", "content": "x"}
    body = {"model": "footnote", "messages": [message] * 20_000, "max_tokens": 2}

    assert numbers.post("/v1/chat/completions", json=body).status_code == 413
    body["messages"] = [message] * 1_001
    assert numbers.post("/v1/chat/completions", json=body).status_code == 422


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_large_is_refused_at_once_when_all_of_it_was_read(numbers, declared):
    body = b" " * (1 << 20) + b"{}"
    began = time.monotonic()

    refused = numbers.post("/v1/search", content=body if declared else iter([body]))

    assert refused.status_code == 413
    assert time.monotonic() - began < 10, "it waited for a body that had ended"
