"""The size of the page's first load, and how soon something is seen of it on a slow network."""

import gzip

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import LOG, QUESTION

MOST_BYTES = 170_000


async def test_the_first_load_is_light_and_has_no_pdf_viewer(open_page: Opening, tenant: Tenant, url: str) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    names: list[str] = []
    page.on("request", lambda request: names.append(request.url.removeprefix(url).partition("?")[0]))
    await page.reload()
    await seen(page, "h1", "Ask about what is in your documents")
    await page.wait_for_load_state("networkidle")
    loaded = {name for name in names if not name.startswith("/v1/")}
    sizes = {name: len(gzip.compress(tenant.http.get(name).content)) for name in loaded}

    assert "/" in loaded
    assert any(name.endswith(".js") for name in loaded)
    assert sum(sizes.values()) <= MOST_BYTES, sizes
    assert not any("pdf" in name for name in loaded), "the PDF viewer is loaded when it is needed"
    tenant.ask(QUESTION)


# As WebPageTest's "3G": 1.6 Mbit/s down, 768 kbit/s up, 300 ms there and back.
THREE_G = {
    "offline": False,
    "latency": 300,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 768_000 / 8,
}
FIRST_PAINT_MS = 2_500


async def test_on_3g_something_is_seen_within_two_and_a_half_seconds(
    open_page: Opening, tenant: Tenant, url: str
) -> None:
    page = await open_page(tenant)
    network = await page.context.new_cdp_session(page)
    await network.send("Network.enable")
    await network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    await network.send("Network.emulateNetworkConditions", THREE_G)
    await page.goto(f"{url}/?slow", wait_until="commit")
    await seen(page, "h1", "Start with a document", timeout=30_000)
    painted = await page.evaluate(
        "() => performance.getEntriesByName('first-contentful-paint').map(({startTime}) => startTime)"
    )
    encoded = await page.evaluate(
        "() => performance.getEntriesByType('resource').filter(({name}) => name.includes('/assets/'))"
        ".map(({encodedBodySize, decodedBodySize}) => [encodedBodySize, decodedBodySize])"
    )

    assert len(painted) == 1
    assert painted[0] <= FIRST_PAINT_MS
    assert sum(sent for sent, _ in encoded) < sum(whole for _, whole in encoded) / 2, "the assets are compressed"
