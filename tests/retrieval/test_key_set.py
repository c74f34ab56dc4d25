"""retrieval.key_set behaves as a set of integer keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.key_set import NO_KEYS, KeySet

some = st.sets(st.integers(0, 3000) | st.integers(0, 1 << 62), max_size=30)


def array(keys: set[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(list(keys), dtype=np.int64)


@given(left=some, right=some)
def test_key_set_operations_equal_those_of_a_python_set(left: set[int], right: set[int]) -> None:
    keys = KeySet(array(left))

    assert keys.tolist() == sorted(left)
    assert len(keys) == len(left)
    assert keys.plus(array(right)).tolist() == sorted(left | right)
    assert keys.minus(array(right)).tolist() == sorted(left - right)
    assert keys.contains(array(right)).tolist() == [key in left for key in array(right).tolist()]
    assert (keys == KeySet(array(right))) is (left == right)


@given(held=some)
def test_the_bitmap_holds_the_same_keys(held: set[int]) -> None:
    bits = KeySet(array(held)).bitmap

    if bits is None:
        assert max(held) >= 1 << 20
    else:
        assert np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist() == sorted(held)


@given(counts=st.lists(st.integers(0, 5), max_size=8), gaps=st.lists(st.integers(0, 9), min_size=8, max_size=8))
def test_runs_are_joined_in_any_order(counts: list[int], gaps: list[int]) -> None:
    firsts: list[int] = []
    expected: list[int] = []
    at = 0
    for count, gap in zip(counts, gaps, strict=False):
        at += gap
        firsts.append(at)
        expected += range(at, at + count)
        at += count
    backwards = np.array(firsts[::-1], dtype=np.int64), np.array(counts[::-1], dtype=np.int64)

    assert KeySet.of_runs(*backwards).tolist() == expected


def test_negative_keys_have_no_bit() -> None:
    bits = KeySet(np.array([-5, 3])).bitmap

    assert bits is not None
    assert np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist() == [3]


def test_it_does_not_follow_the_array_it_was_made_of() -> None:
    given_keys = np.array([1, 2, 3])
    keys = KeySet(given_keys)
    given_keys[0] = 0

    assert keys.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        keys.keys[0] = 9


def test_the_empty_key_set_supports_plus_and_minus() -> None:
    assert len(NO_KEYS) == 0
    assert NO_KEYS.plus(np.array([4])).tolist() == [4]
    assert NO_KEYS.minus(np.array([4])) is NO_KEYS
    with pytest.raises(ValueError, match="one row"):
        KeySet(np.zeros((2, 2), np.int64))
