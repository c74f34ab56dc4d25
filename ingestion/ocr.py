"""Optical character recognition with RapidOCR, whose models (PP-OCRv6) are in its wheel: offline, one thread.

Installed by `footnote-rag[ocr]`; without it there is no recogniser. It takes a few hundred MB and
seconds a page, so it runs in the parser process alone.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

MOST_SIDE = 2000  # pixels of a picture's longer side; the recogniser would shrink a larger one

Picture = npt.NDArray[np.uint8]  # height x width x 3, blue first


@dataclass(frozen=True, slots=True)
class RecognisedLine:
    """A line of text in a picture and the box around it, in pixels from the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class Recognizer(Protocol):
    """Reads text in pictures."""

    def lines(self, picture: Picture) -> list[RecognisedLine]:
        """The lines of text in `picture`, in no promised order; none where there is none."""
        ...


class RapidRecognizer:
    """RapidOCR on the CPU."""

    def __init__(self) -> None:
        from rapidocr import RapidOCR

        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",  # it would name the file's text
                "Global.max_side_len": MOST_SIDE,
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def lines(self, picture: Picture) -> list[RecognisedLine]:
        """See `Recognizer`."""
        found = self._engine(picture)
        if found.boxes is None or found.txts is None:
            return []
        return [
            RecognisedLine(str(text), *(float(side) for side in (*corners.min(axis=0), *corners.max(axis=0))))
            for corners, text in zip(found.boxes, found.txts, strict=True)
        ]


def load_recognizer() -> Recognizer | None:
    """The recogniser, `None` where it is not installed."""
    if find_spec("rapidocr") is None or find_spec("onnxruntime") is None:
        return None
    return RapidRecognizer()
