"""Validates keys, vectors and queries, in the same way for every vector index."""

import numpy as np

from retrieval.ports import Keys, Vectors


def check_keys(keys: Keys) -> None:
    """Keys must be `(n,)` integers, each once.

    Raises:
        ValueError: They are not.
    """
    if keys.ndim != 1 or (keys.size and not np.issubdtype(keys.dtype, np.integer)):
        raise ValueError(f"keys must be one row of integers, got shape {keys.shape} of {keys.dtype}")
    if len(np.unique(keys)) != len(keys):
        raise ValueError("keys must not repeat")


def check_rows(keys: Keys, vectors: Vectors, *, dim: int) -> None:
    """`vectors` must be `(len(keys), dim)` finite numbers, `keys` as in `check_keys` and not negative.

    A NaN would sort anywhere and an infinity would answer every query, so neither gets in. Keys are
    row ids, and FAISS answers -1 for "nothing".

    Raises:
        ValueError: They are not.
    """
    check_keys(keys)
    if len(keys) and keys.min() < 0:
        raise ValueError("keys must not be negative")
    if vectors.shape != (len(keys), dim):
        raise ValueError(f"vectors must have shape ({len(keys)}, {dim}), got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors must be finite numbers")


def check_query(query: Vectors, *, k: int, dim: int) -> None:
    """`query` must be `(dim,)` finite numbers and `k` not negative.

    Raises:
        ValueError: They are not.
    """
    if query.shape != (dim,):
        raise ValueError(f"the query vector must have shape ({dim},), got {query.shape}")
    if not np.isfinite(query).all():
        raise ValueError("the query vector must hold finite numbers")
    if k < 0:
        raise ValueError(f"k must be at least 0, got {k}")
