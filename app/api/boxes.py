"""Bodies of where a passage is printed."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.contents import Version
from app.api.dependencies import CorpusDep, PrincipalDep, visible_document
from app.api.schemas.shape import ResponseBody, problems
from app.errors import InvalidRequest, NotFound


class PageBoxesBody(ResponseBody):
    """Where the passage stands on one page.

    Lengths are points of 1/72 inch on the page as it is shown, turned where the file says so.
    """

    page: int = Field(description="The page, from 1.", examples=[4])
    width: float = Field(description="Its width.", examples=[612.0])
    height: float = Field(description="Its height.", examples=[792.0])
    boxes: list[tuple[float, float, float, float]] = Field(
        description="Left, top, right and bottom on each printed line, from the page's upper left corner.",
        examples=[[[72.0, 96.5, 540.0, 108.5]]],
    )


class BoxesBody(ResponseBody):
    """Where a passage is printed, page by page."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[PageBoxesBody] = Field(
        description="The pages it stands on; none in formats without pages, or where the file cannot be opened."
    )
    exact: bool = Field(
        description="Whether every character was found; false where some, or all, were not (a scanned page has none).",
        examples=[True],
    )
    coverage: float = Field(
        description="The share of the passage's words that have a box, in [0, 1]; where it is nearly 1 a page's footer "
        "or a label in a figure may be what has none.",
        examples=[0.98],
    )


router = APIRouter(tags=["documents"])


@router.get(
    "/v1/documents/{document_id}/boxes", summary="Where a passage is printed", responses=problems(404, 422, 503)
)
def read_boxes(
    document_id: str,
    corpus: CorpusDep,
    principal: PrincipalDep,
    start: Annotated[int, Query(ge=0, description="First character, inclusive.")],
    end: Annotated[int, Query(ge=0, description="Last character, exclusive.")],
    version: Version = None,
) -> BoxesBody:
    """The rectangles of characters `[start, end)` of a PDF's canonical text on its pages; none for other formats."""
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
