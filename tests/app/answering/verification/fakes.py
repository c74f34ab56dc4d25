"""A fake of the embedder that verification uses."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class OneDirection:
    """Implements `SentenceEmbedder`: every text has the same vector; `embedded` records the texts of each call."""

    def __init__(self) -> None:
        self.embedded: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.embedded.append(list(texts))
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32)
