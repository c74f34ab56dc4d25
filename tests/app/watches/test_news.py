"""Events of watches are posted at least once each, with pauses that grow, and signed."""

import json
from collections.abc import Mapping
from typing import Any

from app.db.watch_runs import WatchDeliveries
from app.outbound.webhooks import NotDelivered
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS
from app.watches.runner import WatchNews
from tests.app.watches.desk import FEE, QUESTION, RAISED, Desk


class Receiver:
    """Takes deliveries, or refuses the next ones."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.refusing = 0

    def post(self, body: Mapping[str, object]) -> None:
        if self.refusing:
            self.refusing -= 1
            raise NotDelivered("The receiver answered 500.")
        self.taken.append(json.loads(json.dumps(body)))


def news_of(desk: Desk, receiver: Receiver) -> WatchNews:
    return WatchNews(WatchDeliveries(desk.state.database, clock=desk.clock), receiver.post)


def change(desk: Desk, *, deliver: bool = True) -> str:
    """Have one event, and return its id."""
    watch = desk.watch()
    desk.shelf.put(FEE)
    desk.runner(deliver=deliver).work()
    desk.shelf.put(RAISED, version=2)
    desk.now += 3600
    desk.runner(deliver=deliver).work()
    (event,) = desk.events(watch)
    return str(event.id)


def test_an_event_is_posted_once_with_both_answers_and_the_passages(desk: Desk) -> None:
    event_id, receiver = change(desk), Receiver()
    assert news_of(desk, receiver).work() == 1
    assert news_of(desk, receiver).work() == 0

    (body,) = receiver.taken
    assert (body["id"], body["object"], body["tenant_id"]) == (event_id, "watch_event", "acme")
    assert body["question"] == QUESTION
    (found,) = body["differences"]
    assert (found["kinds"], found["before"]["cited_text"], found["after"]["cited_text"]) == (["number"], FEE, RAISED)
    assert body["created_at"] == body["after"]["created_at"] == "2030-03-17T18:46:40.000Z"


def test_a_refused_event_is_posted_again_with_the_same_id(desk: Desk) -> None:
    event_id, receiver = change(desk), Receiver()
    receiver.refusing = 2
    news = news_of(desk, receiver)
    news.work()
    assert news.work() == 0, "not at once"
    for pause in (10, 20):
        desk.now += pause
        news.work()

    assert [body["id"] for body in receiver.taken] == [event_id]


def test_it_is_given_up_after_so_many_attempts(desk: Desk) -> None:
    change(desk)
    receiver = Receiver()
    receiver.refusing = 100
    news = news_of(desk, receiver)
    attempts = 0
    for _ in range(MAX_ATTEMPTS + 3):
        attempts += news.work()
        desk.now += 3600

    assert attempts == MAX_ATTEMPTS


def test_without_a_webhook_nothing_waits(desk: Desk) -> None:
    change(desk, deliver=False)

    assert news_of(desk, Receiver()).work() == 0


def test_a_server_that_stops_posts_no_more(desk: Desk) -> None:
    change(desk)
    receiver = Receiver()
    news_of(desk, receiver).work(stopping=lambda: True)
    assert receiver.taken == []
    news_of(desk, receiver).work()
    assert len(receiver.taken) == 1
