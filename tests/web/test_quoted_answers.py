"""Answers made of quotes: a lead in large type, sentences with the words marked that answer, and what is known of each.

The server's own answer is replaced by one of quotes on its way to the page, so that each outcome is certain.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import BEFORE, CLAIM, HARBOUR, LOG, QUESTION
from tests.web.test_accessibility import found_in, needs_axe

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

LEAD = "Forty ships"
UNSURE = "The documents do not clearly answer this. These passages are the nearest:"


@dataclass(frozen=True, slots=True)
class Quoted:
    """An answer of quotes from a document's passages."""

    cited: dict[str, Any]  # a footnote of the server's to the passage, of whatever answer
    sentences: tuple[str, ...]
    answered: bool = True
    verified: tuple[bool, ...] = (True, False)

    @property
    def text(self) -> str:
        """The answer in Markdown."""
        first = f"**{LEAD}** [1]" if self.answered else UNSURE
        return "\n\n".join([first, *(f"> {sentence} [1]" for sentence in self.sentences)])

    @property
    def citations(self) -> list[dict[str, Any]]:
        """A footnote for each marker."""
        marks = [at for at in range(len(self.text)) if self.text.startswith("[1]", at)]
        verified = (self.verified[:1] if self.answered else ()) + self.verified
        return [
            {**self.cited, "answer_start": at, "answer_end": at + 3, "verified": sure, "answers": 0.9 if sure else 0.3}
            for at, sure in zip(marks, verified, strict=False)
        ]

    @property
    def fields(self) -> dict[str, Any]:
        """What the server tells of it at its end, and keeps."""
        words = {"start": 2, "end": 2 + len(LEAD)}
        lead = {"kind": "lead", "start": 0, "end": len(f"**{LEAD}** [1]"), "citations": [0], "words": words}
        note = {"kind": "note", "start": 0, "end": len(UNSURE), "citations": [], "code": "nearest_passages"}
        parts: list[dict[str, Any]] = [lead if self.answered else {**note, "language": None}]
        for number, sentence in enumerate(self.sentences, start=int(self.answered)):
            start = self.text.index(f"> {sentence}") + 2
            end = start + len(sentence)
            at = self.text.find(LEAD, start, end)
            marks = [{"start": at, "end": at + len(LEAD)}] if at >= 0 else []
            quote = {"quoted": {"start": start, "end": end}, "answers": 0.9, "highlights": marks}
            parts.append({"kind": "quote", "start": start, "end": end + len(" [1]"), "citations": [number], **quote})
        return {"answered": self.answered, "reason": None if self.answered else "unsure", "parts": parts}

    async def stream(self, route: "Route") -> None:
        """The server's stream with this answer in it."""
        response = await route.fetch()
        given = [event.split("\ndata: ", 1) for event in (await response.text()).split("\n\n") if "\ndata: " in event]
        events = {name.removeprefix("event: "): json.loads(data) for name, data in given}
        told = [
            ("sources", events["sources"]),
            *(("delta", {"text": self.text[at : at + 9]}) for at in range(0, len(self.text), 9)),
            *(("citation", citation) for citation in self.citations),
            ("usage", events["usage"]),
            ("done", {**events["done"], **self.fields}),
        ]
        body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in told)
        await route.fulfill(response=response, body=body)

    async def keep(self, route: "Route") -> None:
        """The conversation that the server has kept, with this answer in it."""
        response = await route.fetch()
        body = await response.json()
        for turn in body["data"]:
            turn.update(answer=self.text, citations=self.citations, answered=self.answered)
            turn["making"].update(self.fields)
        await route.fulfill(response=response, json=body)


async def answering(page: "Page", answer: Quoted) -> None:
    """Let the page get this answer to whatever it asks, now and when it looks at the conversation again."""

    async def asked(route: "Route") -> None:  # playwright notes what it calls, which a method here does not let it
        await answer.stream(route)

    async def kept(route: "Route") -> None:
        await answer.keep(route)

    await page.route("**/v1/ask", asked)
    await page.route("**/v1/conversations/conv_*", kept)


def footnote(tenant: Tenant, name: str, content: str | bytes) -> dict[str, Any]:
    """Of the server's own answer, to the claim in this document."""
    tenant.upload(name, content)
    (first, *_) = tenant.ask(QUESTION)["citations"]
    assert isinstance(first, dict)
    return first


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
async def test_a_lead_and_its_quotes_say_what_is_confirmed(open_page: Opening, tenant: Tenant, width: int) -> None:
    page = await open_page(tenant, width=width)
    await answering(page, Quoted(footnote(tenant, "the log.pdf", LOG), (CLAIM, BEFORE)))
    turn = await ask(page, QUESTION)

    lead, quotes = turn.locator(".ask-lead"), turn.locator(".ask-quote")
    assert await lead.inner_text() == f"{LEAD}1"
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    assert await lead.evaluate(size) > await quotes.first.evaluate(size)
    assert await quotes.locator("mark").all_inner_texts() == [LEAD]
    confirmed, other = [await quote.inner_text() for quote in await quotes.all()]
    assert CLAIM in confirmed
    assert "the log.pdf, page 2" in confirmed
    assert "Confirmed" in confirmed
    assert BEFORE in other
    assert "Word for word on page 2" in other
    assert "Confirmed" not in other
    assert await turn.locator(".badge.good").count() == 1
    assert await turn.locator(".ask-mark.doubtful, .badge.warn, .ask-footnotes").count() == 0
    assert "%" not in await turn.inner_text()
    assert await found_in(page, "quotes") == []


async def test_a_quote_opens_its_passage_and_is_kept_and_copied(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant)
    await answering(page, Quoted(footnote(tenant, "the log.pdf", LOG), (CLAIM, BEFORE)))
    await ask(page, QUESTION)
    await page.reload()
    await seen(page, ".ask-quote mark", LEAD)

    await page.get_by_role("link", name="Footnote 1: the log.pdf, page 2").first.hover()
    card = await page.get_by_role("tooltip").inner_text()
    assert "Confirmed" in card
    assert "%" not in card
    await page.get_by_role("link", name="the log.pdf, page 2", exact=True).click()
    await seen(page, ".passage-panel .pdf-box")
    await page.get_by_role("button", name="Copy with footnotes").click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"**{LEAD}** [^1]\n\n> {CLAIM} [^1]\n\n> {BEFORE} [^1]")
    assert "not confirmed" not in copied


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
async def test_an_unsure_answer_is_a_calm_box_of_the_nearest_quotes(
    open_page: Opening, tenant: Tenant, width: int
) -> None:
    page = await open_page(tenant, width=width)
    cited = footnote(tenant, "harbour.txt", HARBOUR)
    await answering(page, Quoted(cited, (CLAIM,), answered=False, verified=(False,)))
    turn = await ask(page, QUESTION)

    box = turn.locator(".ask-unsure")
    said = await box.inner_text()
    assert UNSURE in said
    assert CLAIM in said
    assert await box.get_by_role("link", name="Word for word in harbour.txt").count() == 1
    assert await turn.locator(".badge.good, .badge.warn, .doubtful, .ask-refusal, .ask-lead").count() == 0
    announced = page.get_by_role("status").filter(has_text="The documents do not clearly answer this.")
    assert await announced.count() == 1
    assert await found_in(page, "unsure") == []
