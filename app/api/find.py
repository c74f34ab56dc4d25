"""Search inside one document: the occurrences of a phrase in its canonical text."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.contents import Version
from app.api.dependencies import CorpusDep, Limit, PrincipalDep, visible_document
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ResponseBody, problems
from app.documents.occurrences import MOST_PHRASE, find_phrase, pages_of, snippet
from app.errors import NotFound


class OccurrenceBody(ResponseBody):
    """A place where the phrase stands."""

    start_char: int = Field(description="First character in the canonical text.", examples=[120])
    end_char: int = Field(description="One past its last character.", examples=[127])
    page_start: int | None = Field(description="Its page, slide or sheet; null for formats without.", examples=[4])
    page_end: int | None = Field(description="Its last page.", examples=[4])
    snippet: str = Field(description="The words around it, in one line.", examples=["… how revenue rose in 2024 …"])


class OccurrencesBody(ResponseBody):
    """The occurrences of a phrase in a document, from its start."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    document_id: str = Field(description="The document.")
    version: int = Field(description="The version that was searched.")
    total: int = Field(description="Number of occurrences, those beyond `limit` included.", examples=[17])
    data: list[OccurrenceBody] = Field(description="The first `limit` of them.")


router = APIRouter(tags=["documents"])


# A plain function, so FastAPI runs it in a thread: the text may have 20 million characters.
@router.get("/v1/documents/{document_id}/find", summary="Search inside a document", responses=problems(404, 422))
def find_in_document(
    document_id: Id,
    corpus: CorpusDep,
    principal: PrincipalDep,
    q: Annotated[
        str,
        Query(
            min_length=1,
            max_length=MOST_PHRASE,
            description="The phrase. Case, accents, line breaks and hyphenation make no difference.",
            examples=["revenue"],
        ),
    ],
    version: Version = None,
    limit: Limit = 200,
) -> OccurrencesBody:
    """Where a phrase stands in the canonical text. No model is called."""
    document = visible_document(corpus, principal, document_id)
    wanted = version if version is not None else document.live_version
    if wanted is None:
        raise NotFound("The document has no indexed version yet.")
    text = corpus.contents.text(document_id, tenant_id=principal.tenant_id, version=wanted)
    found = find_phrase(text, q, most=limit)
    structure, _ = corpus.contents.structure(document_id, tenant_id=principal.tenant_id, version=wanted)
    pages = [(page.number, page.start_char, page.end_char) for page in structure]
    data = []
    for span in found.spans:
        first, last = pages_of(span, pages)
        data.append(
            OccurrenceBody(
                start_char=span.start_char,
                end_char=span.end_char,
                page_start=first,
                page_end=last,
                snippet=snippet(text, span),
            )
        )
    return OccurrencesBody(document_id=document_id, version=wanted, total=found.total, data=data)
