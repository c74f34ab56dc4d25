"""Comparison of two versions of a document, or of two documents."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.dependencies import CorpusDep, Cursor, Limit, PrincipalDep, visible_document
from app.api.schemas.bounds import LARGEST_INTEGER, Id
from app.api.schemas.kept_citations import WordRunBody
from app.api.schemas.shape import ResponseBody, problems
from app.db.paging import decode_cursor, encode_cursor
from app.documents.comparing import ComparedChange, ComparedDocuments, ComparedPassage, ComparedText
from app.errors import NotFound
from ingestion.comparison import DifferenceKind

_MOST_SHOWN = 400_000  # characters of the passages of one page


class ComparedPassageBody(ResponseBody):
    """A passage of one of the two versions; it can be cited by its characters."""

    start_char: int = Field(description="First character in the canonical text of its version.", examples=[120])
    end_char: int = Field(description="One past its last character.", examples=[149])
    page_start: int | None = Field(description="Its page, slide or sheet; null for formats without.", examples=[4])
    page_end: int | None = Field(description="Its last page.", examples=[4])
    text: str = Field(description="Exactly these characters.", examples=["The notice period is 60 days."])

    @classmethod
    def of(cls, passage: ComparedPassage | None) -> "ComparedPassageBody | None":
        """The body for a passage; none for none."""
        if passage is None:
            return None
        return cls(
            start_char=passage.start_char,
            end_char=passage.end_char,
            page_start=passage.page_start,
            page_end=passage.page_end,
            text=passage.text,
        )


class ComparedChangeBody(ResponseBody):
    """A change between the two versions."""

    kind: DifferenceKind = Field(description="`added`, `removed`, `altered`, or `moved`: the same words elsewhere.")
    section: list[str] = Field(description="The headings around it, outermost first.", examples=[["Terms", "Notice"]])
    old: ComparedPassageBody | None = Field(description="The passage before; null where it was added.")
    new: ComparedPassageBody | None = Field(description="The passage after; null where it was removed.")
    words: list[WordRunBody] = Field(description="Of an altered passage: the runs of both wordings, in reading order.")

    @classmethod
    def of(cls, change: ComparedChange) -> "ComparedChangeBody":
        """The body for a change."""
        return cls(
            kind=change.kind,
            section=list(change.section),
            old=ComparedPassageBody.of(change.old),
            new=ComparedPassageBody.of(change.new),
            words=[WordRunBody(kind=run.kind, text=run.text) for run in change.words],
        )


class ComparedSideBody(ResponseBody):
    """One of the two versions."""

    document_id: str = Field(description="The document.", examples=["doc_1"])
    version: int = Field(description="The version.", examples=[1])
    title: str | None = Field(description="Its title, as it declares or shows it, else the words of its name.")


class ChangeCountsBody(ResponseBody):
    """The number of changes by kind, and of sentences without one."""

    added: int = Field(description="Passages that only the new version has.")
    removed: int = Field(description="Passages that only the old version has.")
    altered: int = Field(description="Passages in another wording.")
    moved: int = Field(description="Passages that stand elsewhere, word for word.")
    unchanged: int = Field(description="Sentences without a change.")


class ComparisonBody(ResponseBody):
    """A page of the changes between two versions, in the order of the new one."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    old: ComparedSideBody = Field(description="The version that is compared with.")
    new: ComparedSideBody = Field(description="The live version of the document in the path.")
    counts: ChangeCountsBody = Field(description="All changes, those of other pages included.")
    data: list[ComparedChangeBody] = Field(description="The changes of this page.")
    has_more: bool = Field(description="Whether another page follows.", examples=[False])
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last.")


router = APIRouter(tags=["documents"])


# A plain function, so FastAPI runs it in a thread: comparing a thousand pages takes seconds.
@router.get("/v1/documents/{document_id}/compare", summary="Compare two versions", responses=problems(404, 422))
def compare_documents(
    document_id: Id,
    corpus: CorpusDep,
    principal: PrincipalDep,
    with_: Annotated[
        Id | None, Query(alias="with", description="Another document to compare with; default: this one.")
    ] = None,
    version: Annotated[
        int | None,
        Query(
            ge=1,
            le=LARGEST_INTEGER,
            description="The version to compare with; default: of another document the live one, of this one the "
            "newest before the live one.",
        ),
    ] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> ComparisonBody:
    """The changes from another version, or another document, to the live version of this one.

    Sentences are compared, and no model is called. A passage in other words is `altered`, with the words that differ;
    one that stands elsewhere word for word is `moved`. Running headers and footers are left out.
    """
    (start,) = (0,) if cursor is None else decode_cursor(cursor, int)
    contents, tenant_id = corpus.contents, principal.tenant_id
    live = visible_document(corpus, principal, document_id).live_version
    if live is None:
        raise NotFound("The document has no indexed version yet.")
    other_id = with_ if with_ is not None else document_id
    other = visible_document(corpus, principal, other_id).live_version
    if version is not None:
        wanted = version
    elif other_id != document_id and other is not None:
        wanted = other
    else:
        wanted = _version_before(corpus, other_id, tenant_id, live)
    compared = ComparedDocuments(
        ComparedText.read(contents, other_id, tenant_id=tenant_id, version=wanted),
        ComparedText.read(contents, document_id, tenant_id=tenant_id, version=live),
    )
    counts = compared.counts
    listed = compared.changes(start=max(0, int(start)), most=limit, most_characters=_MOST_SHOWN)
    end = max(0, int(start)) + len(listed)
    more = end < sum(counts.values())
    return ComparisonBody(
        old=_side(corpus, other_id, tenant_id, wanted),
        new=_side(corpus, document_id, tenant_id, live),
        counts=ChangeCountsBody(**{kind.value: count for kind, count in counts.items()}, unchanged=compared.unchanged),
        data=[ComparedChangeBody.of(change) for change in listed],
        has_more=more,
        next_cursor=encode_cursor(end) if more else None,
    )


def _version_before(corpus: CorpusDep, document_id: str, tenant_id: str, live: int) -> int:
    """The newest indexed version before the live one.

    Raises:
        NotFound: There is none.
    """
    found, _ = corpus.contents.versions(document_id, tenant_id=tenant_id, limit=500, cursor=encode_cursor(live))
    earlier = next((one.version for one in found if one.indexed_at is not None), None)
    if earlier is None:
        raise NotFound("The document has no earlier version to compare with.")
    return earlier


def _side(corpus: CorpusDep, document_id: str, tenant_id: str, version: int) -> ComparedSideBody:
    title = corpus.contents.title(document_id, tenant_id=tenant_id, version=version)
    return ComparedSideBody(document_id=document_id, version=version, title=title)
