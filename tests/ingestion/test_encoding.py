"""ingestion.encoding reads text in whatever encoding it comes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.encoding import decode, starts_text

JAPANESE = (
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。" * 3
)
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. " * 3
FRENCH = "Longtemps, je me suis couché de bonne heure. Parfois, à peine ma bougie éteinte, mes yeux se fermaient. " * 3


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", JAPANESE),
        ("utf-8-sig", RUSSIAN),
        ("utf-16", JAPANESE),
        ("utf-16-le", FRENCH),
        ("utf-16-be", FRENCH),
        ("utf-32", RUSSIAN),
        ("utf-32-le", FRENCH),
        ("shift_jis", JAPANESE),
        ("euc_jp", JAPANESE),
        ("iso2022_jp", JAPANESE),
        ("cp1251", RUSSIAN),
        ("koi8-r", RUSSIAN),
        ("cp1252", FRENCH),
    ],
)
def test_text_comes_back_whatever_its_encoding(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)).removeprefix("\ufeff") == text
    assert starts_text(text.encode(encoding)[:400])


@settings(deadline=None)
@given(text=st.text(min_size=1).filter(lambda text: "\0" not in text and "\x1b" not in text))
def test_utf_8_always_comes_back(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")


def test_a_few_broken_bytes_in_utf_8_become_replacement_characters() -> None:
    data = JAPANESE.encode() + b"\xff\xfe" + "終".encode()

    assert decode(data) == JAPANESE + "\ufffd\ufffd終"


def test_a_declared_encoding_is_believed_where_utf_8_is_ruled_out() -> None:
    short = "żółć"  # far too short to guess

    assert decode(f'<meta charset="iso-8859-2">{short}'.encode("iso-8859-2")).endswith(short)


def test_a_codec_that_is_no_encoding_of_text_cannot_be_declared() -> None:
    assert decode(b'<meta charset="zlib">' + FRENCH.encode("cp1252")).endswith(FRENCH)


def test_random_bytes_are_no_text() -> None:
    assert not starts_text(random.Random(7).randbytes(4096))
