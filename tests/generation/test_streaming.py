"""generation.streaming loses no text, breaks no character and leaks no stop string."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generation.streaming import IncrementalDecoder, StopStrings


def decode_bytes(ids: Sequence[int]) -> str:
    """A byte-level tokenizer's decoder: ids below 256 are bytes, 256 is a special token without text."""
    return bytes(token for token in ids if token < 256).decode("utf-8", errors="replace")


def deltas_of(decoder: IncrementalDecoder, ids: Sequence[int]) -> list[str]:
    """Push until a stop string is found, then flush."""
    deltas = []
    for token in ids:
        deltas.append(decoder.push(token))
        if decoder.stopped:
            break
    return [*deltas, decoder.flush()]


@settings(deadline=None)
@given(st.text())
def test_a_character_split_over_byte_tokens_comes_whole(text: str) -> None:
    deltas = deltas_of(IncrementalDecoder(decode_bytes), list(text.encode("utf-8", "replace")))

    assert "".join(deltas) == text.encode("utf-8", "replace").decode()
    assert all(len(delta) <= 1 for delta in deltas), "one byte completes at most one character"


@pytest.mark.parametrize("text", ["🍎", "日本語", "👩‍👩‍👧‍👦", "naïve", "a🍎b"])
def test_no_delta_ever_holds_half_a_character(text: str) -> None:
    deltas = deltas_of(IncrementalDecoder(decode_bytes), list(text.encode()))

    assert "�" not in "".join(deltas)
    assert "".join(deltas) == text


@settings(deadline=None)
@given(st.lists(st.integers(0, 256), max_size=60))
def test_deltas_join_to_the_decoded_text_even_for_invalid_bytes(ids: list[int]) -> None:
    assert "".join(deltas_of(IncrementalDecoder(decode_bytes), ids)) == decode_bytes(ids)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["▁", "▁the", "cat", "▁▁", "s"]), max_size=20))
def test_spaces_survive_a_decoder_that_strips_the_first_one(pieces: list[str]) -> None:
    """SentencePiece models: the text of a token depends on whether one comes before it."""

    def decode(ids: Sequence[int]) -> str:
        return "".join(pieces[token] for token in ids).replace("▁", " ").removeprefix(" ")

    deltas = deltas_of(IncrementalDecoder(decode), range(len(pieces)))

    assert "".join(deltas) == decode(range(len(pieces)))


def test_a_character_cut_off_by_the_end_is_replaced_once() -> None:
    decoder = IncrementalDecoder(decode_bytes)

    assert deltas_of(decoder, list("é🍎".encode()[:-1])) == ["", "é", "", "", "", "�"]


def test_endless_invalid_bytes_do_not_wait_for_ever() -> None:
    longest = 0

    def decode(ids: Sequence[int]) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return decode_bytes(ids)

    deltas = deltas_of(IncrementalDecoder(decode), [0x80] * 1000)

    assert "".join(deltas) == "�" * 1000
    assert longest <= 128


@pytest.mark.parametrize("pieces", [["a", "EN", "D", "b"], ["aEN", "Db"], ["aENDb"], list("aENDb")])
def test_a_stop_string_is_found_however_it_is_cut(pieces: list[str]) -> None:
    stop = StopStrings(("END",))
    passed = ""
    for piece in pieces:
        passed += stop.push(piece)
        if stop.found:
            break

    assert (passed + stop.flush(), stop.found) == ("a", True)


def test_text_that_only_began_like_a_stop_string_is_emitted() -> None:
    stop = StopStrings(("END",))

    assert [stop.push("aE"), stop.push("N"), stop.push("d"), stop.push("E"), stop.flush()] == ["a", "", "ENd", "", "E"]
    assert not stop.found


def cut_by_characters(text: str, stops: Sequence[str]) -> str:
    """The reference: read one character more at a time until the text ends with a stop string."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))]
    return text


@settings(deadline=None)
@example(pieces=["abab"], stops=["abab", "ba"])  # the one that starts later is complete first
@given(
    pieces=st.lists(st.text("ab", max_size=4), max_size=12),
    stops=st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_stop_strings_cut_the_same_text_as_reading_by_characters(pieces: list[str], stops: list[str]) -> None:
    subject = StopStrings(stops)
    passed = ""
    for piece in pieces:
        passed += subject.push(piece)
        assert not any(stop in passed for stop in stops)
        if subject.found:
            break
    passed += subject.flush()

    assert passed == cut_by_characters("".join(pieces), stops)


@settings(deadline=None)
@given(text=st.text("aé🍎", max_size=20), stop=st.text("aé🍎", min_size=1, max_size=3))
def test_stop_strings_work_over_byte_tokens(text: str, stop: str) -> None:
    decoder = IncrementalDecoder(decode_bytes, stop=(stop,))

    assert "".join(deltas_of(decoder, list(text.encode()))) == text.partition(stop)[0]
    assert decoder.stopped == (stop in text)
