"""generation.prefix derives block keys from a salt and all tokens before the block."""

from hypothesis import given
from hypothesis import strategies as st

from generation.prefix import PrefixChain

TOKENS = st.lists(st.integers(0, 5), max_size=40)


def keys(tokens: list[int], *, salt: str = "a", block_tokens: int = 4) -> list[bytes]:
    chain = PrefixChain(salt=salt, block_tokens=block_tokens)
    chain.extend(tokens)
    return [key.digest for key in chain.keys]


@given(TOKENS, TOKENS)
def test_names_are_equal_exactly_as_far_as_the_tokens_are(first: list[int], second: list[int]) -> None:
    common = 0
    while common < min(len(first), len(second)) and first[common] == second[common]:
        common += 1

    ones, others = keys(first), keys(second)
    shared = sum(1 for one, other in zip(ones, others, strict=False) if one == other)

    assert (len(ones), len(others)) == (len(first) // 4, len(second) // 4)
    assert shared == common // 4


@given(TOKENS)
def test_keys_under_different_salts_are_disjoint(tokens: list[int]) -> None:
    assert not set(keys(tokens, salt="a")) & set(keys(tokens, salt="b"))


@given(TOKENS, st.data())
def test_naming_a_sequence_as_it_grows_or_at_once_is_the_same(tokens: list[int], data: st.DataObject) -> None:
    chain = PrefixChain(salt="a", block_tokens=4)
    for stop in sorted(data.draw(st.lists(st.integers(0, len(tokens)), max_size=6))):
        chain.extend(tokens[:stop])
    chain.extend(tokens)

    assert [key.digest for key in chain.keys] == keys(tokens)


def test_the_same_block_after_another_beginning_has_another_name() -> None:
    assert keys([1, 1, 1, 1, 7, 7, 7, 7])[1] != keys([2, 1, 1, 1, 7, 7, 7, 7])[1]
