"""The route that shows where a passage is printed."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.contents import Version
from app.api.dependencies import PrincipalDep, StateDep, visible_document
from app.api.schemas.boxes import BoxesBody, PageBoxesBody
from app.api.schemas.shape import problems
from app.errors import InvalidRequest, NotFound

router = APIRouter(tags=["documents"])


@router.get(
    "/v1/documents/{document_id}/boxes", summary="Where a passage is printed", responses=problems(404, 422, 503)
)
def read_boxes(
    document_id: str,
    state: StateDep,
    principal: PrincipalDep,
    start: Annotated[int, Query(ge=0, description="First character, inclusive.")],
    end: Annotated[int, Query(ge=0, description="Last character, exclusive.")],
    version: Version = None,
) -> BoxesBody:
    """The rectangles of characters `[start, end)` of a PDF's canonical text on its pages; none for other formats."""
    document = visible_document(state, principal, document_id)
    if start > end:
        raise InvalidRequest("'start' must not be above 'end'.", param="start")
    wanted = version if version is not None else document.live_version
    if wanted is None:
        raise NotFound("The document has no indexed version yet.")
    found = state.passage_boxes.find(document_id, tenant_id=principal.tenant_id, version=wanted, start=start, end=end)
    return BoxesBody(
        data=[
            PageBoxesBody(page=page.number, width=page.width, height=page.height, boxes=[*page.boxes])
            for page in found.pages
        ],
        exact=found.exact,
        coverage=found.coverage,
    )
