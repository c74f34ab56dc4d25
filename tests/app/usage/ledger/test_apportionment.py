"""app.usage.ledger.apportionment: what a server counted is divided among what was planned, to the last token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.types import Components, DocumentShare
from app.usage.ledger.apportionment import apportioned, components_of, shares_of

COUNT = st.integers(0, 10_000)
PARTS = st.lists(COUNT, min_size=1, max_size=9)


@given(PARTS, COUNT)
def test_every_token_is_divided_and_none_is_further_than_one_from_its_proportion(parts: list[int], total: int) -> None:
    whole = sum(parts)
    if total and not whole:
        with pytest.raises(ValueError, match="cannot be divided"):
            apportioned(parts, total)
        return
    divided = apportioned(parts, total if whole else 0)

    assert sum(divided) == (total if whole else 0)
    for part, share in zip(parts, divided, strict=True):
        assert part or not share, "what was not planned gets nothing"
        assert not whole or abs(share - part * total / whole) < 1
        assert total > whole or share <= part, "no part grows where all shrink"


@given(PARTS)
def test_a_total_that_is_the_sum_changes_nothing(parts: list[int]) -> None:
    assert apportioned(parts, sum(parts)) == parts


def test_equal_remainders_go_to_the_earlier_part() -> None:
    assert apportioned([1, 1, 1, 1], 2) == [1, 1, 0, 0]


@pytest.mark.parametrize(("parts", "total"), [([1, 2], -1), ([3, -1], 1), ([], 1)])
def test_what_cannot_be_divided_is_refused(parts: list[int], total: int) -> None:
    with pytest.raises(ValueError, match="cannot be divided"):
        apportioned(parts, total)


@given(st.builds(Components, COUNT, COUNT, COUNT, COUNT, COUNT), st.integers(0, 60_000))
def test_components_sum_to_every_count(planned: Components, total: int) -> None:
    if not planned.total and total:
        assert components_of(planned, total) == Components(template=total)
        return
    counted = components_of(planned, total)

    assert counted.total == total
    assert counted.context <= planned.context, "a share on the ledger never grows"


@given(st.lists(st.tuples(st.integers(1, 5), COUNT), min_size=1, max_size=6), st.data())
def test_shares_sum_to_the_context_whatever_their_order(counts: list[tuple[int, int]], data: st.DataObject) -> None:
    shares = [DocumentShare(f"doc_{place}", chunks, tokens) for place, (chunks, tokens) in enumerate(counts)]
    context = data.draw(st.integers(0, sum(share.tokens for share in shares)))
    scaled = shares_of(shares, context)

    assert sum(share.tokens for share in scaled) == context
    assert [(share.document_id, share.chunks) for share in scaled] == [
        (share.document_id, share.chunks) for share in shares
    ]
    mixed = data.draw(st.permutations(shares))
    assert {share.document_id: share for share in shares_of(mixed, context)} == {
        share.document_id: share for share in scaled
    }


def test_no_shares_are_no_shares() -> None:
    assert shares_of((), 0) == ()
