"""The overview of a document: what it is, a summary by quotation, and questions that it answers. One route."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.answering.retrieving.parts import Parts, page_at, parts_of
from app.api.dependencies import CorpusDep, PrincipalDep, visible_document
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ResponseBody, problems
from app.db.suggestions import KeptQuestion
from app.errors import NotFound
from app.types import Document
from ingestion.formats import FORMATS
from ingestion.types import MediaType, PageRange
from retrieval.types import Span


class SummaryQuoteBody(ResponseBody):
    """A quotation of the summary."""

    part: Literal["opening", "heading"] = Field(description="The opening or abstract, or a heading.")
    start_char: int = Field(description="First character in the canonical text.", examples=[45])
    end_char: int = Field(description="One past its last character.", examples=[612])
    page: int | None = Field(description="The page it begins on; null where the format has none.", examples=[1])
    text: str = Field(description="Exactly `content[start_char:end_char]`.")


class SuggestedQuestionBody(ResponseBody):
    """A question that the document answers."""

    question: str = Field(description="The question.", examples=["When was the ferry built?"])
    document_id: str = Field(description="Ask it with `document_ids` of this document alone.", examples=["doc_01k9"])
    start_char: int = Field(description="First character of the quote that answers it.", examples=[1204])
    end_char: int = Field(description="One past its last character.", examples=[1287])
    page_start: int | None = Field(description="The page the quote begins on; null where the format has none.")
    page_end: int | None = Field(description="The page it ends on.")
    answer: str = Field(
        description="The words of the quote that answer; all of it where the question is what the document is about.",
        examples=["1987"],
    )
    confirmed: bool = Field(
        description="Whether the answer was confirmed when the question was asked of the document. Else it was given, "
        "from the sentence that the question was made of, and not confirmed."
    )


class DocumentOverviewBody(ResponseBody):
    """The overview of a document's live version."""

    object: Literal["document.overview"] = Field(default="document.overview", description="Always `document.overview`.")
    document_id: str = Field(description="The document.", examples=["doc_01k9"])
    version: int = Field(description="The live version, to which all offsets refer.", examples=[1])
    title: str = Field(description="The title found in it, else its file name.", examples=["Strategic Plan 2022"])
    kind: str = Field(description="The format, as the usual ending of its files.", examples=["pdf"])
    pages: int = Field(description="Pages, slides or sheets; 0 where the format has none.", examples=[31])
    summary: list[SummaryQuoteBody] = Field(
        description="Its opening or abstract, and its main headings, each quoted exactly."
    )
    questions: list[SuggestedQuestionBody] = Field(
        description="At most three questions that it answers, the confirmed first; each was asked of it. Where fewer "
        "than three are confirmed, one asks what the document is about."
    )
    state: Literal["preparing", "ready", "unavailable", "unasked"] = Field(
        description="`preparing`: more questions are being found, ask again in a second; `ready`: these are all, often "
        "none; `unavailable`: a budget has no room or a model failed, try in a minute; `unasked`: none were looked for "
        "so far, and `prepare=false` starts no search."
    )


router = APIRouter(tags=["documents"])


@router.get("/v1/documents/{document_id}/overview", summary="Read an overview", responses=problems(404))
def read_overview(
    document_id: Id,
    corpus: CorpusDep,
    principal: PrincipalDep,
    prepare: Annotated[bool, Query(description="Find the questions if nobody has yet; that is billed.")] = True,
) -> DocumentOverviewBody:
    """A document's subject, by quotation, and questions that it answers.

    The questions are found in the background at the first request, which is billed for it, and kept with the version.
    With `prepare=false` only those that are known are told.
    """
    document = visible_document(corpus, principal, document_id)
    version = document.live_version
    if version is None:
        raise NotFound("The document has no indexed version yet.")
    tenant_id = principal.tenant_id
    title = corpus.contents.title(document_id, tenant_id=tenant_id, version=version) or ""
    parts = parts_of(corpus.contents, document_id, tenant_id=tenant_id, version=version, title=title)
    if parts is None:
        raise NotFound("There is no such version.")
    found = corpus.suggester.of(document_id, version=version, principal=principal, prepare=prepare)
    return DocumentOverviewBody(
        document_id=document_id,
        version=version,
        title=title or document.filename,
        kind=_kind(document),
        pages=document.pages,
        summary=_summary(parts),
        questions=[_question(document_id, one, parts.pages) for one in found.questions],
        state=found.state,
    )


def _summary(parts: Parts) -> list[SummaryQuoteBody]:
    named: list[tuple[Literal["opening", "heading"], Span]] = [("heading", span) for span in parts.headings]
    if parts.opening is not None:
        named.insert(0, ("opening", parts.opening))
    return [
        SummaryQuoteBody(
            part=part,
            start_char=span.start_char,
            end_char=span.end_char,
            page=parts.page(span),
            text=parts.text(span),
        )
        for part, span in named
    ]


def _question(document_id: str, kept: KeptQuestion, pages: Sequence[PageRange]) -> SuggestedQuestionBody:
    return SuggestedQuestionBody(
        question=kept.question,
        document_id=document_id,
        start_char=kept.start_char,
        end_char=kept.end_char,
        page_start=page_at(pages, kept.start_char),
        page_end=page_at(pages, max(kept.start_char, kept.end_char - 1)),
        answer=kept.answer,
        confirmed=kept.confirmed,
    )


def _kind(document: Document) -> str:
    """The ending of the file where its format has it, else the format's usual one."""
    ending = document.filename.rpartition(".")[2].lower()
    found = FORMATS.get(MediaType(document.media_type)) if document.media_type in set(MediaType) else None
    if found is None:
        return ending
    return ending if ending in found.extensions else found.extensions[0]
