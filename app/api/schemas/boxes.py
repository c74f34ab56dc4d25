"""Bodies of where a passage is printed."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody


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
