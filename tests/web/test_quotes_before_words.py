"""While a model words the answer its quotes stand below the words; then they are folded."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.asking import begin
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, LOG, QUESTION
from tests.web.test_accessibility import found_in, needs_axe

if TYPE_CHECKING:
    from playwright.async_api import Page

SAID = "Forty ships came to the harbour."
QUOTES: dict[str, Any] = {
    "answer": f"> {SAID}",
    "answered": True,
    "citations": [],
    "parts": [
        {
            "kind": "quote",
            "start": 0,
            "end": len(SAID) + 2,
            "citations": [],
            "quoted": {"start": 2, "end": len(SAID) + 2},
            "answers": 0.9,
            "highlights": [{"start": 2, "end": 13}],
        }
    ],
    "answers": 0.9,
}

# The server's stream gets the event `quotes` behind its first event, and goes on once `release` is called.
_WITH_QUOTES = """
(quotes) => {
  const real = window.fetch;
  const released = new Promise((release) => { window.release = release; });
  window.fetch = async (...asked) => {
    const response = await real(...asked);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const text = await response.text();
    const end = text.indexOf("\\n\\n", text.indexOf("event: sources")) + 2;
    const bytes = (part) => new TextEncoder().encode(part);
    const body = new ReadableStream({
      async start(stream) {
        stream.enqueue(bytes(text.slice(0, end) + `event: quotes\\ndata: ${quotes}\\n\\n`));
        await released;
        stream.enqueue(bytes(text.slice(end)));
        stream.close();
      },
    });
    return new Response(body, { headers: response.headers });
  };
}
"""


async def shown(page: "Page") -> bool:
    """Whether the quotes can be seen."""
    visible: bool = await page.locator(".ask-before blockquote").first.evaluate("one => one.checkVisibility()")
    return visible


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
async def test_quotes_stand_open_while_the_answer_is_worded_and_are_folded_then(
    open_page: Opening, tenant: Tenant, width: int
) -> None:
    tenant.upload("the log.pdf", LOG)
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant, width=width)
    await page.evaluate(_WITH_QUOTES, json.dumps(QUOTES))
    await begin(page, QUESTION)
    await seen(page, ".ask-before blockquote", SAID)

    assert await shown(page)
    assert await page.locator(".ask-before mark").inner_text() == SAID[:11]
    assert await found_in(page, "worded", settle=False) == []
    await page.evaluate("window.release()")
    await seen(page, ".ask-how")
    assert not await shown(page)
    answer, quotes = page.locator(".ask-text").first, page.locator(".ask-before")
    (above, below) = [await one.bounding_box() for one in (answer, quotes)]
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]
    await page.locator(".ask-before summary").click()
    assert await shown(page)
    assert await found_in(page, "worded") == []
