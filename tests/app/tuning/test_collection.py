"""app.tuning.collection reads a judged collection and divides it by article."""

from pathlib import Path

import pytest

from app.tuning.collection import Collection, read_collection
from tests.app.tuning.collection_folder import write_collection

SHARE = 0.3


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return read_collection(write_collection(tmp_path / "small"))


def test_a_document_is_read_under_its_title_and_a_question_nobody_judged_is_left_out(collection: Collection) -> None:
    assert collection.documents["d7"].startswith("Article 3\nspring rose rare7")
    assert len(collection.questions) == 24


def test_the_digest_is_that_of_the_files(tmp_path: Path, collection: Collection) -> None:
    same = read_collection(write_collection(tmp_path / "again"))
    other = read_collection(write_collection(tmp_path / "other", documents=25))

    assert collection.sha256 == same.sha256 != other.sha256


def test_passages_of_one_article_are_on_the_same_side(collection: Collection) -> None:
    sides = [collection.held_apart(f"d{n}", share=SHARE) for n in range(24)]

    assert sides[0::2] == sides[1::2]
    assert 0 < sum(sides) < 24
