"""The size of the page's first load."""

import gzip

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import LOG, QUESTION

MOST_BYTES = 250_000


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
