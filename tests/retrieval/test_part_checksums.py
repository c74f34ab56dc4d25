"""retrieval.index_file gives the same checksums while writing as while reading."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from retrieval.index_file import PART_BYTES, PartChecksums, checksums_of


@pytest.mark.parametrize("size", [0, 1, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 5])
def test_written_in_pieces_and_read_by_parts_agree(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    (tmp_path / "f").write_bytes(data)
    written = PartChecksums()
    for start in range(0, size, 3_000_001):
        written.update(data[start : start + 3_000_001])

    read = checksums_of(tmp_path / "f", size=size)

    assert written.hexdigests() == read
    parts = [data[start : start + PART_BYTES] for start in range(0, size, PART_BYTES)]
    assert read == [hashlib.blake2b(part, digest_size=32).hexdigest() for part in parts]
