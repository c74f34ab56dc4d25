"""Presented sources of a few sentences."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from retrieval.types import Chunk, Hit, Scores, Source, Span

REPORT = (
    "Northwind's revenue rose 12 percent to 48 million dollars in 2025. The board proposed a dividend of 30 cents. "
    "Zoë Müller became chief financial officer in March 2024. The drug did not lower blood pressure in adults."
)


def source(text: str, *, number: int = 1, heading: str = "", start: int = 0) -> Source:
    """`text` as a chunk that starts at `start` of its document."""
    chunk = Chunk(
        key=number,
        id=f"chk_{number}",
        document_id="doc_1",
        version=1,
        collection_id="col_1",
        filename="report.pdf",
        external_id=None,
        ordinal=number - 1,
        text=text,
        start_char=start,
        end_char=start + len(text),
        page_start=1,
        page_end=1,
        heading_path=(heading,) if heading else (),
        token_count=10,
    )
    return Source(
        number=number,
        hit=Hit(chunk, Scores(fused=1.0)),
        spans=(Span(start, start + len(text)),),
        header=f"[{number}] report.pdf\n",
        body=text,
        tokens=10,
        compressed=False,
    )


class OneDirection:
    """Finds every text alike, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked.append(list(texts))
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32)
