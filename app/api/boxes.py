"""Passage boxes: the rectangles of a passage on the pages of a PDF, and their route."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.contents import Version
from app.api.dependencies import CorpusDep, PrincipalDep, visible_document
from app.api.schemas.bounds import LARGEST_INTEGER, Id
from app.api.schemas.shape import ResponseBody, problems
from app.errors import InvalidRequest, NotFound


class PageBoxesBody(ResponseBody):
    """The boxes of the passage on one page.

    Lengths are points of 1/72 inch on the page as it is displayed, after the rotation that the file specifies.
    """

    page: int = Field(description="The page, from 1.", examples=[4])
    width: float = Field(description="Width of the page.", examples=[612.0])
    height: float = Field(description="Height of the page.", examples=[792.0])
    boxes: list[tuple[float, float, float, float]] = Field(
        description="Left, top, right and bottom of each printed line, from the page's upper left corner.",
        examples=[[[72.0, 96.5, 540.0, 108.5]]],
    )


class BoxesBody(ResponseBody):
    """The boxes of a passage, page by page."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[PageBoxesBody] = Field(
        description="The pages of the passage; empty for formats without pages and for files that cannot be opened."
    )
    exact: bool = Field(
        description="Whether every character has a box; false when some have none, as on scanned pages.",
        examples=[True],
    )
    coverage: float = Field(
        description="Share of the passage's words that have a box, in [0, 1]. Slightly below 1, a page's footer or a "
        "label in a figure may be missing.",
        examples=[0.98],
    )


router = APIRouter(tags=["documents"])


@router.get(
    "/v1/documents/{document_id}/boxes", summary="Find a passage on its pages", responses=problems(404, 422, 503)
)
def read_boxes(
    document_id: Id,
    corpus: CorpusDep,
    principal: PrincipalDep,
    start: Annotated[int, Query(ge=0, le=LARGEST_INTEGER, description="First character, inclusive.")],
    end: Annotated[int, Query(ge=0, le=LARGEST_INTEGER, description="Last character, exclusive.")],
    version: Version = None,
) -> BoxesBody:
    """The boxes of characters `[start, end)` of a PDF's canonical text on its pages; none for other formats."""
    document = visible_document(corpus, principal, document_id)
    if start > end:
        raise InvalidRequest("'start' must not be above 'end'.", param="start")
    wanted = version if version is not None else document.live_version
    if wanted is None:
        raise NotFound("The document has no indexed version yet.")
    found = corpus.passage_boxes.find(document_id, tenant_id=principal.tenant_id, version=wanted, start=start, end=end)
    return BoxesBody(
        data=[
            PageBoxesBody(page=page.number, width=page.width, height=page.height, boxes=[*page.boxes])
            for page in found.pages
        ],
        exact=found.exact,
        coverage=found.coverage,
    )
