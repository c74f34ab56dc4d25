"""Presented sources, each the whole of one chunk."""

from retrieval.types import Hit, Scores, Source, Span
from tests.retrieval.fakes import chunk

REPORT = (
    "Northwind's revenue rose 12 percent to 48 million dollars in 2025. The board proposed a dividend of 30 cents. "
    "Zoë Müller became chief financial officer in March 2024. The drug did not lower blood pressure in adults."
)


def source(text: str, *, number: int = 1, heading: str = "", start: int = 0, pages: tuple[int, int] = (1, 1)) -> Source:
    """`text` as a chunk that starts at `start` of its document, from the first to the second of `pages`."""
    found = chunk(
        number,
        text,
        filename="report.pdf",
        start_char=start,
        page_start=pages[0],
        page_end=pages[1],
        heading_path=(heading,) if heading else (),
    )
    return Source(
        number=number,
        hit=Hit(found, Scores(fused=1.0)),
        spans=(Span(start, start + len(text)),),
        header=f"[{number}] report.pdf\n",
        body=f"{text.rstrip()}\n",
        tokens=10,
        compressed=False,
    )
