"""The usage charts and tables equal the API's reports."""

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Page, Request

UNITS = 10**12  # of the smallest amount the bill has
SPLITS = {
    "kind": None,
    "user": "user_id",
    "key": "api_key_id",
    "model": "model",
    "collection": "project_id",
    "document": "document_id",
}
_TABLE = """
(chart) => [...document.querySelectorAll(`[data-chart=${chart}] tbody tr`)].map(
  (row) => [...row.querySelectorAll("data")].map((cell) => cell.value))
"""
_TOTALS = "[...document.querySelectorAll('[data-table=totals] tfoot data')].map((cell) => cell.value)"
_HEADS = "(chart) => [...document.querySelectorAll(`[data-chart=${chart}] thead th`)].map((head) => head.textContent)"

Table = list[dict[str, int]]
"""For each bucket, what each series has of it."""


async def drawn(page: "Page", chart: str) -> Table:
    heads = await page.evaluate(_HEADS, chart)
    return [dict(zip(heads[1:], map(int, row), strict=True)) for row in await page.evaluate(_TABLE, chart)]


class Reports:
    """What the page asked for last, asked for again."""

    def __init__(self, tenant: Tenant, page: "Page") -> None:
        self._http = tenant.http
        self._query: dict[str, str] = {}
        page.on("request", self._note)

    def _note(self, request: "Request") -> None:
        if "/v1/admin/costs?" in request.url:
            self._query = {
                key: value for key, value in httpx.URL(request.url).params.items() if key not in {"page", "limit"}
            }

    @property
    def split(self) -> str | None:
        return self._query.get("group_by")

    def read(self, path: str) -> list[list[dict[str, Any]]]:
        """Each bucket's results."""
        buckets, page = [], None
        query = {key: value for key, value in self._query.items() if key != "group_by" or value != "document_id"}
        while True:
            asked = {**(self._query if path.endswith("costs") else query), **({"page": page} if page else {})}
            body = self._http.get(path, params={**asked, "limit": 31}).json()
            buckets += [bucket["results"] for bucket in body["data"]]
            page = body["next_page"]
            if page is None:
                return buckets

    def tokens(self, dimension: str | None) -> list[Counter[str]]:
        """By group, or by kind without one."""
        read, embedded = self.read("/v1/admin/usage/completions"), self.read("/v1/admin/usage/embeddings")
        ranked, judged = self.read("/v1/admin/usage/rerank"), self.read("/v1/admin/usage/judge")
        found = []
        for completions, embeddings, ranks, judgements in zip(read, embedded, ranked, judged, strict=True):
            sums: Counter[str] = Counter()
            for one in completions:
                for kind, name in (
                    ("Read", "input_uncached_tokens"),
                    ("Read from the cache", "input_cached_tokens"),
                    ("Written", "output_tokens"),
                ):
                    sums[str(one[dimension]) if dimension else kind] += one[name]
            for kind, results in (
                ("Searching and indexing", embeddings),
                ("Ranking", ranks),
                ("Finding and checking answers", judgements),
            ):
                for one in results:
                    sums[str(one[dimension]) if dimension else kind] += one["input_tokens"]
            found.append(sums)
        return found

    def costs(self, dimension: str | None) -> list[Counter[str]]:
        return [
            sum(
                (
                    Counter(
                        {str(one[dimension]) if dimension else "Cost": int(Decimal(one["amount"]["value"]) * UNITS)}
                    )
                    for one in results
                    if one["amount"]["value"] is not None
                ),
                Counter[str](),
            )
            for results in self.read("/v1/admin/costs")
        ]


def sizes(table: "Table | list[Counter[str]]") -> list[list[int]]:
    """Each bucket's amounts, whatever they are called."""
    return [sorted(amount for amount in row.values() if amount) for row in table]


def totals(table: Table) -> Counter[str]:
    return sum((Counter(row) for row in table), Counter[str]())


async def test_every_chart_equals_its_api_call(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    collection = tenant.http.post("/v1/collections", json={"name": "papers"}).json()["id"]
    tenant.upload("paper.txt", "Forty ships left the harbour at dawn, says a paper.", collection_id=collection)
    tenant.ask(QUESTION)
    member = tenant.http.post("/v1/admin/keys", json={"name": "laptop", "role": "member", "user_id": "bob"}).json()
    body = {"question": "Who counted every lantern?", "collection_ids": [collection]}
    bob = {"Authorization": f"Bearer {member['secret']}"}
    assert tenant.http.post("/v1/ask", json=body, headers=bob).status_code == 200
    page = await open_page(tenant)
    reports = Reports(tenant, page)
    await page.get_by_role("link", name="Usage").click()
    await page.locator("[data-chart=cost] table").wait_for(state="attached")
    for split, dimension in SPLITS.items():
        await page.get_by_label("Split by").select_option(split)
        async with page.expect_response(lambda response: "/v1/admin/costs?" in response.url):
            await page.get_by_role("button", name="Refresh").click()
        await seen(page, ".charts:not(.waiting)")
        assert reports.split == dimension
        await assert_equal(page, reports, split)


async def assert_equal(page: "Page", reports: Reports, split: str) -> None:
    """Every column of both charts, and the totals below them."""
    costs, billed = await drawn(page, "cost"), reports.costs(SPLITS[split])
    assert sizes(costs) == sizes(billed), split
    assert sum(totals(costs).values()) > 0
    if split == "document":
        return  # tokens of a document over time are not counted apart
    tokens, used = await drawn(page, "tokens"), reports.tokens(SPLITS[split])
    assert sizes(tokens) == sizes(used), split
    if split == "kind":
        assert [+Counter(row) for row in tokens] == [+row for row in used]
        return
    table = await page.evaluate(_TOTALS)
    assert [int(value) for value in table] == [sum(totals(tokens).values()), sum(totals(costs).values())], split


async def test_the_token_chart_grows_by_the_tokens_of_a_new_answer(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    tenant.ask("Who counted every lantern?")
    page = await open_page(tenant, "#/usage")
    await seen(page, "[data-chart=tokens] canvas")
    before = totals(await drawn(page, "tokens"))
    cost = totals(await drawn(page, "cost"))
    usage = tenant.ask(QUESTION)["usage"]
    await page.get_by_role("button", name="Refresh").click()
    await page.wait_for_function(
        "before => Number(document.querySelector('[data-chart=cost] tfoot data').value) > before", arg=cost["Cost"]
    )
    after = totals(await drawn(page, "tokens"))

    assert after["Written"] - before["Written"] == usage["completion_tokens"]
    assert (after - before).total() == usage["total_tokens"]


async def test_the_table_of_documents_equals_the_documents_report(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    tenant.upload("other.txt", "Another text, about nothing in particular.")
    tenant.ask(QUESTION)
    page = await open_page(tenant)
    async with page.expect_response("**/v1/admin/usage/documents?*") as asked:
        await page.get_by_role("link", name="Usage").click()
    told = (await (await asked.value).json())["data"]
    table = page.locator("[data-table=documents] tbody tr")
    await seen(page, "[data-table=documents] tbody tr")

    assert [await row.locator("th").inner_text() for row in await table.all()] == [one["name"] for one in told]
    cited = [int(await row.locator("td").nth(3).inner_text()) for row in await table.all()]
    assert cited == [one["num_cited"] for one in told]
    assert cited[0] == 1


async def test_somebody_with_no_right_to_all_sees_only_their_own(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant.key_of("bob"), "#/usage")
    await seen(page, "main h2", "Your use")

    assert await page.locator("[data-chart]").count() == 0
    assert await page.get_by_role("link", name="Administration").count() == 0
