"""The administrator's overview: each of an administrator's ten questions is answered in at most two clicks."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen, settled
from tests.web.made_documents import HARBOUR, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Page, Response, Route

UNANSWERED = "What does the log say about the moon in the harbour?"
OPERATIONS = Path(__file__).parents[2] / "docs" / "OPERATIONS.md"


def ask(tenant: Tenant, question: str, *, conversation: str | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"question": question}
    if conversation is not None:
        body["conversation_id"] = conversation
    response = tenant.http.post("/v1/ask", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.fixture
def used(tenant: Tenant) -> Tenant:
    """A tenant with an answer that was disliked, a question without an answer, and a document that nobody needs."""
    tenant.upload("harbour.txt", HARBOUR)
    tenant.upload("unused.txt", "Nobody ever asks about the price of parsnips.")
    conversation = tenant.http.post("/v1/conversations", json={}).json()["id"]
    answer = ask(tenant, QUESTION, conversation=conversation)
    said = {"score": -1, "comment": "It was fifty."}
    assert tenant.http.post(f"/v1/requests/{answer['id']}/feedback", json=said).status_code == 201
    assert not ask(tenant, UNANSWERED, conversation=conversation)["answered"]
    assert not ask(tenant, UNANSWERED)["answered"]  # its text is not kept
    return tenant


async def chart(page: "Page", metric: str) -> None:
    await page.locator(f"button[data-metric={metric}]").click()
    await seen(page, "[data-chart=overview] .plot canvas")


async def show(page: "Page", part: str) -> None:
    await page.get_by_role("navigation", name="Parts of the overview").get_by_role("button", name=part).click()


async def unanswered(page: "Page", tenant: Tenant) -> None:
    await show(page, "What the documents did not answer")
    await seen(page, "[data-part=unanswered] tbody", UNANSWERED)
    await seen(page, "[data-part=unanswered] tbody", "harbour.txt")
    await seen(page, "[data-part=unanswered]", "1 more were asked outside of conversations")


async def who_used_most(page: "Page", tenant: Tenant) -> None:
    await show(page, "Who used most")
    await seen(page, "[data-part=people] tbody tr", "ada")
    await seen(page, "[data-part=people] tbody tr", "100%")
    await seen(page, "[data-part=people] tbody tr", "for answers")


async def better_or_worse(page: "Page", tenant: Tenant) -> None:
    await chart(page, "confirmed")
    await seen(page, "button[data-metric=confirmed]", "100%")
    await seen(page, "button[data-metric=questions]", "0 before")


async def what_an_answer_costs(page: "Page", tenant: Tenant) -> None:
    await show(page, "Most expensive questions")
    await seen(page, "[data-part=expensive] tbody", "tokens of sources were read for an answer of")
    await seen(page, "[data-part=expensive] tbody", "max_context_tokens")
    await seen(page, "button[data-metric=cost]", "a question")


async def unused_documents(page: "Page", tenant: Tenant) -> None:
    await show(page, "Documents that are never cited")
    await seen(page, "[data-part=unused] tbody", "unused.txt")
    assert "harbour.txt" not in await page.locator("[data-part=unused] tbody").inner_text()


async def how_fast(page: "Page", tenant: Tenant) -> None:
    await chart(page, "seconds")
    await seen(page, "button[data-metric=seconds]", "95 % within")


async def who_is_active(page: "Page", tenant: Tenant) -> None:
    await chart(page, "people")
    await seen(page, "button[data-metric=people]", "1")


async def what_people_dislike(page: "Page", tenant: Tenant) -> None:
    await show(page, "What people disliked")
    await seen(page, "[data-part=disliked] tbody", "It was fifty.")


async def what_the_month_costs(page: "Page", tenant: Tenant) -> None:
    await seen(page, "[data-metric=month]", "so far")
    assert "–" not in await page.locator("[data-metric=month] .tile-figure").inner_text()


async def unsure_answers(page: "Page", tenant: Tenant) -> None:
    async with page.expect_response(lambda response: "result=unsure" in response.url):
        await page.get_by_label("Show").first.select_option("unsure")
    await seen(page, "[data-part=unanswered]", "Every question in this time")


QUESTIONS: dict[str, Callable[["Page", Tenant], Awaitable[None]]] = {
    "What did we ask that it could not answer?": unanswered,
    "Who used most of the budget and on what?": who_used_most,
    "Is it getting better or worse?": better_or_worse,
    "What does one answer cost and why?": what_an_answer_costs,
    "Which documents are never used?": unused_documents,
    "How fast is it?": how_fast,
    "Who is active?": who_is_active,
    "What do people dislike?": what_people_dislike,
    "What will this month cost?": what_the_month_costs,
    "Which answers were unsure?": unsure_answers,
}


async def test_each_of_ten_questions_is_answered_in_at_most_two_clicks(open_page: Opening, used: Tenant) -> None:
    """The first click opens the administration; each answer takes at most one more."""
    page = await open_page(used)
    for answer in QUESTIONS.values():
        await page.get_by_role("link", name="Ask", exact=True).click()
        await page.get_by_role("link", name="Administration").click()
        await seen(page, "main h2", "Overview")
        await seen(page, ".tiles")
        await answer(page, used)


def test_the_ten_questions_are_in_the_manual() -> None:
    manual = OPERATIONS.read_text(encoding="utf-8")

    assert [question for question in QUESTIONS if f"| {question} |" not in manual] == []


async def test_the_tiles_equal_the_api(open_page: Opening, used: Tenant) -> None:
    page = await open_page(used)
    async with page.expect_response(lambda response: "/v1/admin/overview?" in response.url) as asked:
        await page.get_by_role("link", name="Administration").click()
    total = (await (await asked.value).json())["total"]
    await seen(page, ".tiles")

    assert (total["num_questions"], total["num_refused"], total["num_thumbs_down"]) == (3, 2, 1)
    for metric, name in (("questions", "num_questions"), ("refused", "num_refused"), ("people", "num_active_users")):
        assert await page.locator(f"[data-metric={metric}] .tile-figure").inner_text() == str(total[name])


@pytest.mark.parametrize("width", [1280, 390])
async def test_what_stands_below_the_figures_does_not_move_when_they_come_or_change(
    open_page: Opening, used: Tenant, width: int
) -> None:
    page = await open_page(used, width=width)
    counted = asyncio.Event()

    async def wait(route: "Route") -> None:
        await counted.wait()
        response = await route.fetch()
        body = await response.json()
        body["month"]["expected_cost"]["value"] = "0.000987000000"  # as long as a figure gets
        await route.fulfill(response=response, json=body)

    await page.route("**/v1/admin/overview?*", wait)
    await page.evaluate("location.hash = '#/admin/overview'")
    await seen(page, ".tiles-to-come")
    places = [await _top_of_lists(page)]
    assert await page.locator(".figures[aria-busy=true]").count() == 1
    counted.set()
    await seen(page, "[data-chart=overview] .plot canvas")
    places.append(await _top_of_lists(page))
    for metric in ("confirmed", "cost", "failed"):
        await page.locator(f"button[data-metric={metric}]").click()
        await seen(page, f"button[data-metric={metric}][aria-pressed=true]")
        places.append(await _top_of_lists(page))

    assert max(places) - min(places) < 1, places


async def _top_of_lists(page: "Page") -> float:
    """How far down the page the lists below the figures begin, in pixels."""
    top: float = await page.locator(".jump").evaluate("one => one.getBoundingClientRect().top + scrollY")
    return top


def _is_a_file(response: "Response") -> bool:
    return response.request.headers.get("accept") == "text/csv"


@pytest.mark.parametrize("part", ["unanswered", "people", "expensive", "unused", "disliked"])
async def test_each_list_is_downloaded_as_a_file(open_page: Opening, used: Tenant, part: str) -> None:
    page = await open_page(used, "#/admin/overview")
    await seen(page, f"[data-part={part}] tbody")
    await seen(page, ".tiles")
    await settled(page)  # figures that come later move the lists down, and a click that is under way would miss

    async with page.expect_download() as started, page.expect_response(_is_a_file) as sent:
        await page.locator(f"[data-part={part}]").get_by_role("button", name="Download as CSV").click()
    assert (await sent.value).ok
    download = await started.value

    assert download.suggested_filename.endswith(".csv")
    text = Path(await download.path()).read_text(encoding="utf-8")
    assert len(text.splitlines()) > 1


@pytest.mark.parametrize(
    ("section", "chosen", "told"), [("feedback", "bad", "It was fifty."), ("audit", "key.created", "key.created")]
)
async def test_feedback_and_the_audit_log_are_downloaded_as_they_are_shown(
    open_page: Opening, used: Tenant, section: str, chosen: str, told: str
) -> None:
    used.key_of("bob")
    page = await open_page(used, f"#/admin/{section}")
    await seen(page, "tbody tr")
    await page.get_by_label("Show").select_option(chosen)
    await settled(page)

    async with page.expect_download() as started, page.expect_response(_is_a_file) as sent:
        await page.get_by_role("button", name="Download as CSV").click()
    assert (await sent.value).ok
    download = await started.value
    text = Path(await download.path()).read_text(encoding="utf-8")
    assert download.suggested_filename.startswith(f"footnote-{section}-")
    assert told in text
    assert chosen in (await sent.value).url or "score_below=0" in (await sent.value).url


async def test_a_key_of_some_collections_opens_on_its_keys(open_page: Opening, used: Tenant) -> None:
    collection = used.http.get("/v1/collections").json()["data"][0]["id"]
    body = {"name": "few", "role": "admin", "user_id": "eve", "collections": [collection]}
    few = Tenant(used.http.post("/v1/admin/keys", json=body).json()["secret"], used.http, used.name)
    page = await open_page(few)

    await page.get_by_role("link", name="Administration").click()

    await seen(page, "main h2", "Keys")
    await settled(page)
    assert await page.get_by_role("link", name="Overview").count() == 0
