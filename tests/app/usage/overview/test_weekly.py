"""The weekly summary: the last whole week in the reporting zone, once for each receiver, with retries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.db.session import Database
from app.errors import SetupError
from app.outbound.mail import Letter, Mailer
from app.outbound.webhooks import NotDelivered, Webhooks
from app.settings import Settings
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS
from app.usage.overview.overview import OverviewQuery
from app.usage.overview.reports import OverviewReports
from app.usage.overview.weekly import MOST_ADDRESSES, WeeklySummary, Weeks, last_weeks, weekly_summaries
from app.usage.overview.weekly_letter import weekly_letter
from tests.app.outbound.smtp_server import smtp_server
from tests.app.usage.overview.asked import Asked, Installation
from tests.app.usage.samples import Clock

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp())


MONDAY, BEFORE, NEXT = at("2025-11-17T00:00"), at("2025-11-10T00:00"), at("2025-11-24T00:00")


class Receiver:
    """Takes what is posted, except while it is out of order."""

    def __init__(self) -> None:
        self.broken = False
        self.taken: list[Mapping[str, Any]] = []
        self.asked = 0

    def send(self, body: Mapping[str, object]) -> None:
        self.asked += 1
        if self.broken:
            raise NotDelivered("The receiver answered 500.")
        self.taken.append(body)


def weekly(
    database: Database, receiver: Receiver, clock: Clock, *, tenant_id: str = "t1", channel: str = "webhook"
) -> WeeklySummary:
    reports = OverviewReports(database, zone=BERLIN, clock=clock)
    return WeeklySummary(database, reports, receiver.send, channel=channel, tenant_id=tenant_id, clock=clock)


def test_weeks_begin_on_monday_in_the_reporting_zone_also_where_clocks_change(sqlite_database: Database) -> None:
    reports = OverviewReports(sqlite_database, zone=BERLIN)

    assert last_weeks(reports, NEXT) == Weeks(BEFORE, MONDAY, NEXT)
    assert last_weeks(reports, NEXT - 1).end == MONDAY
    changed = last_weeks(reports, at("2025-10-29T12:00"))  # the clocks went back on the Sunday before
    assert changed.end - changed.start == 7 * 86_400 + 3600


def test_a_week_is_delivered_once_beside_the_week_before(database: Database) -> None:
    clock, receiver = Clock(), Receiver()
    world = Installation(
        database,
        clock,
        [Asked(at=BEFORE + 60), Asked(at=MONDAY + 60), Asked(at=NEXT - 60, result="refused"), Asked(at=NEXT + 60)],
        zone=BERLIN,
    )
    clock.now = NEXT + 3600
    summary = weekly(database, receiver, clock, tenant_id=world.tenant)

    assert summary.work()
    assert not summary.work()
    assert not weekly(database, receiver, clock, tenant_id=world.tenant).work(), "also after a restart"

    (body,) = receiver.taken
    overview = body["overview"]
    query = OverviewQuery(tenant_id=world.tenant, start=MONDAY, end=NEXT)
    expected = OverviewReports(database, zone=BERLIN, clock=clock).overview(query)
    assert body["id"] == f"weekly_summary:{world.tenant}:{MONDAY}"
    assert (overview["total"], len(overview["data"])) == (expected["total"], 7)
    assert (overview["total"]["num_questions"], overview["total"]["num_refused"]) == (2, 1)
    assert (overview["before"]["start_time"], overview["before"]["end_time"]) == (BEFORE, MONDAY)
    assert overview["before"]["result"]["num_questions"] == 1
    assert overview["final"]


def test_it_is_tried_again_later_and_given_up_at_last(sqlite_database: Database) -> None:
    clock, receiver = Clock(NEXT + 3600), Receiver()
    receiver.broken = True
    summary = weekly(sqlite_database, receiver, clock)

    assert summary.work()
    assert not summary.work(), "not before the delay is over"
    clock.now += 11
    receiver.broken = False
    assert weekly(sqlite_database, receiver, clock).work()
    assert len(receiver.taken) == 1

    clock.now += 7 * 86_400
    receiver.broken = True
    for _ in range(MAX_ATTEMPTS + 3):
        summary.work()
        clock.now += 3601
    assert receiver.asked == 2 + MAX_ATTEMPTS


def test_the_week_is_not_sent_before_its_last_questions_have_ended(sqlite_database: Database) -> None:
    clock, receiver = Clock(NEXT + 60), Receiver()
    weekly(sqlite_database, receiver, clock).work()

    assert receiver.taken[0]["id"].endswith(str(BEFORE)), "the week before is the last whole one"


def test_each_receiver_has_deliveries_and_attempts_of_its_own(database: Database) -> None:
    clock, webhook, mail = Clock(), Receiver(), Receiver()
    webhook.broken = True
    world = Installation(database, clock, [Asked(at=MONDAY + 60)], zone=BERLIN)
    clock.now = NEXT + 3600
    by_webhook = weekly(database, webhook, clock, tenant_id=world.tenant)
    by_mail = weekly(database, mail, clock, tenant_id=world.tenant, channel="mail:ada@example.org")

    assert (by_webhook.work(), by_mail.work()) == (True, True)
    assert (len(webhook.taken), len(mail.taken)) == (0, 1)
    webhook.broken = False
    clock.now += 3600
    assert (by_webhook.work(), by_mail.work()) == (True, False)
    assert [one["id"] for one in (*webhook.taken, *mail.taken)] == [f"weekly_summary:{world.tenant}:{MONDAY}"] * 2


def given(database: Database, **changed: Any) -> dict[str, Any]:
    return {
        "url": "",
        "addresses": "",
        "webhooks": Webhooks(),
        "mailer": None,
        "database": database,
        "reports": OverviewReports(database, zone=BERLIN),
        "tenant_id": "t1",
        "clock": Clock(NEXT + 3600),
        **changed,
    }


def test_an_address_inside_is_refused_at_the_start_unless_it_is_named(sqlite_database: Database) -> None:
    inside = "http://127.0.0.1:9/"

    assert weekly_summaries(**given(sqlite_database)) == ()
    with pytest.raises(SetupError, match="FOOTNOTE_SUMMARY_WEBHOOK"):
        weekly_summaries(**given(sqlite_database, url=inside))
    assert len(weekly_summaries(**given(sqlite_database, url=inside, webhooks=Webhooks(hosts="127.0.0.1:9")))) == 1


def mailer(port: int) -> Mailer:
    settings = Settings(_env_file=None, smtp_url=f"smtp://127.0.0.1:{port}", smtp_from="footnote@example.org")
    return Mailer(settings, attempts=1)


def test_it_is_mailed_to_each_address_and_again_to_the_one_that_did_not_get_it(sqlite_database: Database) -> None:
    clock = Clock()
    world = Installation(
        sqlite_database, clock, [Asked(at=BEFORE + 60), Asked(at=MONDAY + 60, result="refused")], zone=BERLIN
    )
    clock.now = NEXT + 3600
    with smtp_server() as box:
        summaries = weekly_summaries(
            **given(
                sqlite_database,
                addresses="ada@example.org, bob@example.org,ada@example.org,",
                mailer=mailer(box.port),
                reports=OverviewReports(sqlite_database, zone=BERLIN, clock=clock),
                tenant_id=world.tenant,
                clock=clock,
            )
        )
        box.refusals = ["451 later"]
        assert [one.work() for one in summaries] == [True, True]
        assert [letter["To"] for letter in box.letters] == ["bob@example.org"]
        clock.now += 3600
        assert [one.work() for one in summaries] == [True, False]

    assert [letter["To"] for letter in box.letters] == ["bob@example.org", "ada@example.org"]
    assert {letter["Subject"] for letter in box.letters} == {
        "Footnote, 2025-11-17 to 2025-11-23: 1 questions, 0 answered"
    }
    lines = box.letters[0].get_content().splitlines()
    assert "Not answered: 1 (the week before: 0)" in lines
    assert "Answered: 0 (the week before: 1)" in lines


@pytest.mark.parametrize("addresses", ["ada", "ada@example.org;bob@example.org", "Ada <ada@example.org>"])
def test_what_is_no_list_of_mail_addresses_is_refused_at_the_start(sqlite_database: Database, addresses: str) -> None:
    with pytest.raises(SetupError, match="FOOTNOTE_SUMMARY_MAIL must be at most 20 mail addresses"):
        weekly_summaries(**given(sqlite_database, addresses=addresses, mailer=mailer(25)))


def test_mail_without_a_mail_server_is_refused_at_the_start(sqlite_database: Database) -> None:
    with pytest.raises(SetupError, match="needs FOOTNOTE_SMTP_URL"):
        weekly_summaries(**given(sqlite_database, addresses="ada@example.org"))


def test_more_addresses_than_are_mailed_are_refused_at_the_start(sqlite_database: Database) -> None:
    many = ",".join(f"p{number}@example.org" for number in range(MOST_ADDRESSES + 1))
    with pytest.raises(SetupError, match="at most 20"):
        weekly_summaries(**given(sqlite_database, addresses=many, mailer=mailer(25)))


def letter_of(database: Database, *before_and_week: Asked) -> Letter:
    clock = Clock()
    world = Installation(database, clock, list(before_and_week), zone=BERLIN)
    clock.now = NEXT + 3600
    summary = weekly(database, Receiver(), clock, tenant_id=world.tenant)
    return weekly_letter(summary.message(Weeks(BEFORE, MONDAY, NEXT)), to="ada@example.org")


def test_every_figure_of_a_letter_is_that_of_the_overview(sqlite_database: Database) -> None:
    letter = letter_of(
        sqlite_database,
        Asked(at=BEFORE + 60, total_us=1_500_000),
        Asked(at=MONDAY + 60, total_us=2_000_000, confirmed=False, score=-1),
        Asked(at=MONDAY + 70, total_us=4_000_000, user_id="bob"),
        Asked(at=MONDAY + 80, result="unsure", total_us=3_000_000),
    )
    told = dict(line.split(": ", 1) for line in letter.text.splitlines() if ": " in line)

    assert letter.subject == "Footnote, 2025-11-17 to 2025-11-23: 3 questions, 2 answered"
    assert told["Questions"] == "3 (the week before: 1)"
    assert told["Unsure"] == "1 (the week before: 0)"
    assert told["Answers with a verified citation"] == "1 of 2 (the week before: 1 of 1)"
    assert told["Disliked"] == "1 (the week before: 0)"
    assert told["Seconds to answer"] == (
        "3 in the median, 95 % within 4 (the week before: 1.5 in the median, 95 % within 1.5)"
    )
    assert told["Active people"] == "2 (the week before: 1)"
    assert "Failed" not in told, "what never happened is left out"


def test_a_week_without_a_question_says_so(sqlite_database: Database) -> None:
    letter = letter_of(sqlite_database)

    assert letter.subject == "Footnote, 2025-11-17 to 2025-11-23: 0 questions, 0 answered"
    assert "Questions: 0" in letter.text.splitlines()
    assert "Seconds to answer: none" in letter.text.splitlines()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        ("0.000000000000", "0.00 USD"),
        ("0.000322000000", "0.000322 USD"),
        ("0.010000000000", "0.01 USD"),
        ("1234.567800000000", "1,234.57 USD"),
    ],
)
def test_money_is_exact_to_a_cent_and_below_a_cent_to_a_millionth(
    sqlite_database: Database, value: str | None, shown: str
) -> None:
    clock = Clock(NEXT + 3600)
    message = dict(weekly(sqlite_database, Receiver(), clock).message(Weeks(BEFORE, MONDAY, NEXT)))
    overview: Any = message["overview"]
    overview["total"]["cost"] = {"value": value, "currency": "usd"}
    letter = weekly_letter(message, to="ada@example.org")

    [line] = [line for line in letter.text.splitlines() if line.startswith("Cost: ")]
    assert line.removeprefix("Cost: ").partition(" (")[0] == shown
