"""app.documents.adapters.word_index: whatever is on disk, the Tantivy index mirrors SQL or does not answer."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.documents.adapters.word_index import WordIndex
from retrieval.tantivy_fields import LexicalEntry
from retrieval.tantivy_index import TantivyIndex
from retrieval.types import Scope
from tests.app.db.samples import Library
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

KEY = np.array([1], dtype=np.int64)


@pytest.fixture
def library(sqlite_database: Database) -> Library:
    library = Library(sqlite_database)
    library.index("alpha", "beta", "gamma", filename="a.txt")
    library.index("delta", "epsilon", filename="b.txt")
    return library


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def opened(library: Library, tmp_path: Path, **options: object) -> WordIndex:
    live = WordIndex(
        tmp_path / "lexical",
        database=library.database,
        chunks=ChunkRepository(library.database),
        **({"engine": "tantivy"} | options),  # type: ignore[arg-type]
    )
    live.start()
    live.wait()
    return live


def assert_saved(library: Library, tmp_path: Path) -> None:
    """The closed index holds the visible chunks, no more and no less, and finds each by its word."""
    index = TantivyIndex.open(tmp_path / "lexical")
    chunks = ChunkRepository(library.database)
    assert index.keys().tolist() == chunks.visible_keys().tolist()
    for key, chunk in chunks.chunks(index.keys().tolist(), scope=Scope("t1")).items():
        found = index.search(chunk.text, tenant_id="t1", collection_ids=None, allowed=None, k=9)
        assert [each for each, _ in found] == [key]
    index.close()


def test_it_is_built_from_sql_and_opened_again(library: Library, tmp_path: Path) -> None:
    for _ in range(2):
        live = opened(library, tmp_path)
        assert live.serving == "tantivy"
        assert len(live.search_text("alpha delta", scope=Scope("t1"), k=9)) == 2
        assert not live.save_if_changed()
        live.close()
    assert_saved(library, tmp_path)
    assert not list(tmp_path.glob("*.corrupt-*"))


def test_what_changed_in_sql_meanwhile_is_mended(library: Library, tmp_path: Path) -> None:
    opened(library, tmp_path).close()
    library.index("zeta", filename="c.txt")
    document = library.documents.list(tenant_id="t1", limit=10)[0][-1]
    library.documents.delete(document.id, tenant_id="t1")

    opened(library, tmp_path).close()

    assert_saved(library, tmp_path)


@pytest.mark.parametrize(
    "damage", ["truncate", "flip", "empty", "missing", "no manifest", "other format", "no meta", "garbled meta"]
)
def test_a_damaged_index_is_set_aside_and_rebuilt(library: Library, tmp_path: Path, damage: str) -> None:
    opened(library, tmp_path).close()
    folder = tmp_path / "lexical"
    data = next(folder.glob("*.term"))
    content = data.read_bytes()
    match damage:
        case "truncate":
            data.write_bytes(content[:-7])
        case "flip":
            data.write_bytes(content[:10] + bytes([content[10] ^ 1]) + content[11:])
        case "empty":
            data.write_bytes(b"")
        case "missing":
            data.unlink()
        case "no manifest":
            (folder / "footnote.json").unlink()
        case "other format":
            (folder / "footnote.json").write_text('{"format": 0}')
        case "no meta":
            (folder / "meta.json").unlink()
        case "garbled meta":
            (folder / "meta.json").write_text("{")

    opened(library, tmp_path).close()

    assert_saved(library, tmp_path)
    assert len(list(tmp_path.glob("lexical.corrupt-*"))) == 1


def test_an_index_with_keys_the_database_never_gave_is_set_aside(library: Library, tmp_path: Path) -> None:
    index = TantivyIndex.create(tmp_path / "lexical")
    index.add([LexicalEntry(key, "t1", library.collection_id, "", "stale") for key in (1, 10_000)])
    index.commit()
    index.close()

    live = opened(library, tmp_path)

    assert live.search_text("stale", scope=Scope("t1"), k=9) == []
    live.close()
    assert_saved(library, tmp_path)


def test_auto_leaves_few_chunks_to_the_database_and_takes_over_when_they_are_many(
    library: Library, tmp_path: Path
) -> None:
    live = opened(library, tmp_path, engine="auto", large=6)
    before: str = live.serving
    assert len(live.search_text("alpha", scope=Scope("t1"), k=9)) == 1

    library.index("zeta", filename="c.txt")
    live.add(ChunkRepository(library.database).visible_keys()[-1:])
    live.wait()

    assert (before, live.serving) == ("sql", "tantivy")
    assert len(live.search_text("zeta", scope=Scope("t1"), k=9)) == 1
    live.close()


def test_by_default_five_chunks_stay_in_sqlite_and_sql_never_builds(library: Library, tmp_path: Path) -> None:
    for engine in ("auto", "sql"):
        live = opened(library, tmp_path, engine=engine)
        assert live.serving == "sql"
        live.close()
    assert not (tmp_path / "lexical").exists()


def test_while_many_chunks_come_commits_are_spaced_and_the_rest_is_found_when_it_is_quiet(
    library: Library, tmp_path: Path
) -> None:
    live = opened(library, tmp_path, clock=Clock())  # each look at the clock is a second: a commit takes one
    shown = []
    for number in range(12):
        before = ChunkRepository(library.database).visible_keys()
        library.index(f"word{number}", filename=f"{number}.txt")
        live.add(np.setdiff1d(ChunkRepository(library.database).visible_keys(), before))
        shown.append(len(live.search_text(f"word{number}", scope=Scope("t1"), k=9)))

    assert shown[0] == 1
    assert 1 < sum(shown) < 5
    assert live.save_if_changed()
    assert len(live.search_text("word11", scope=Scope("t1"), k=9)) == 1
    live.close()
    assert_saved(library, tmp_path)


def test_when_the_disk_refuses_the_database_answers(library: Library, tmp_path: Path) -> None:
    live = opened(library, tmp_path)
    shutil.rmtree(tmp_path / "lexical")

    live.forget(KEY)

    assert live.serving == "sql"
    assert len(live.search_text("alpha delta", scope=Scope("t1"), k=9)) == 2
    live.add(KEY)
    assert not live.save_if_changed()
    live.close()


def test_a_process_that_dies_between_commits_loses_nothing(library: Library, tmp_path: Path) -> None:
    live = opened(library, tmp_path)
    shutil.copytree(
        tmp_path / "lexical", tmp_path / "copy", ignore=shutil.ignore_patterns("*.lock")
    )  # as a crash would
    live.close()
    library.index("zeta", filename="c.txt")
    shutil.rmtree(tmp_path / "lexical")
    (tmp_path / "copy").rename(tmp_path / "lexical")

    opened(library, tmp_path).close()

    assert_saved(library, tmp_path)
