"""ingestion.formats has one complete row for each format."""

from collections import Counter

import pytest

from ingestion.extraction import load_reader
from ingestion.formats import FORMATS, Family
from ingestion.types import MediaType


def test_every_media_type_has_a_row() -> None:
    assert set(FORMATS) == set(MediaType)


def test_an_extension_belongs_to_one_format() -> None:
    extensions = Counter(extension for row in FORMATS.values() for extension in row.extensions)

    assert set(extensions.values()) == {1}
    assert all(extension == extension.lower().lstrip(".") for extension in extensions)


@pytest.mark.parametrize("media_type", MediaType)
def test_every_reader_can_be_loaded(media_type: MediaType) -> None:
    assert callable(load_reader(media_type))


def test_legacy_formats_are_those_converted_to_an_office_format() -> None:
    for row in FORMATS.values():
        assert (row.family is Family.OLE) == (row.current is not None)
        assert row.current is None or FORMATS[row.current].family is Family.OOXML
