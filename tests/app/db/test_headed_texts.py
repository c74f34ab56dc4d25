"""app.db.headed_texts keeps what was read, within its bound, until a chunk is gone."""

from app.db.headed_texts import HeadedTexts


def test_what_was_kept_is_known_and_the_rest_is_named() -> None:
    known = HeadedTexts()
    known.keep({1: ("Ships", "forty ships"), 2: ("", "boats")})

    assert known.of([2, 3, 1]) == ({2: ("", "boats"), 1: ("Ships", "forty ships")}, [3])


def test_a_chunk_that_is_gone_is_not_known() -> None:
    known = HeadedTexts()
    known.keep({1: ("", "ships")})

    known.forget([1, 9])

    assert known.of([1]) == ({}, [1])
    assert known.characters == 0


def test_the_one_unused_longest_makes_room() -> None:
    known = HeadedTexts(most_characters=10)
    known.keep({1: ("", "aaaa"), 2: ("", "bbbb")})
    known.of([1])

    known.keep({3: ("", "cccc")})

    assert known.of([1, 2, 3]) == ({1: ("", "aaaa"), 3: ("", "cccc")}, [2])
    assert known.characters == 8
