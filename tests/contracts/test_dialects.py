"""At most six modules of `app` ask whether the database is SQLite or PostgreSQL; all others are the same on both."""

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASKING = {
    "app/db/dialect.py",  # upserts, locks, JSON columns, sequences
    "app/db/filters.py",  # JSON access in metadata filters
    "app/db/lexical.py",  # full-text search
    "app/db/safety_copy.py",  # SQLite's online backup
    "app/db/server_lock.py",  # PostgreSQL's session lock
    "app/db/session.py",  # connections, pragmas, error codes
}
NAMES = {"sqlite", "postgresql", "postgres"}
ATTRIBUTES = {"dialect", "get_backend_name"}
CHOOSING = {"PerDialect", "kind_of"}


def asks(source: str) -> bool:
    """Whether a module's code, comments and docstrings aside, depends on which database it runs on."""
    return any(_is_question(node) for node in ast.walk(ast.parse(source)))


def _is_question(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module=str(module)) if module.startswith("sqlalchemy.dialects"):
            return True
        case ast.Import(names=names) if any(name.name.startswith("sqlalchemy.dialects") for name in names):
            return True
        case ast.Attribute(attr=attribute) if attribute in ATTRIBUTES:
            return True
        case ast.Call(func=ast.Name(id=name)) if name in CHOOSING:
            return True
        case ast.Compare() | ast.MatchValue():
            return not NAMES.isdisjoint(_texts(ast.walk(node)))
        case ast.Dict(keys=keys):
            return {"sqlite", "postgresql"} <= _texts(keys)
    return False


def _texts(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_only_the_listed_modules_depend_on_the_database_dialect():
    found = {
        str(path.relative_to(ROOT)) for path in (ROOT / "app").rglob("*.py") if asks(path.read_text(encoding="utf-8"))
    }

    assert found == ASKING, "put what differs into app/db/dialect.py"
    assert len(ASKING) <= 6


@pytest.mark.parametrize(
    "source",
    [
        "from sqlalchemy.dialects import postgresql",
        "import sqlalchemy.dialects.sqlite",
        "if connection.dialect.name: pass",
        "slow = database.kind == 'postgresql'",
        "match kind:\n    case 'sqlite': pass",
        "url.get_backend_name()",
        "INSERT = {'sqlite': 1, 'postgresql': 2}",
        "lock = PerDialect(sqlite=None, postgresql=text)",
        "if kind_of(connection): pass",
    ],
)
def test_code_that_depends_on_the_dialect_is_recognised(source: str):
    assert asks(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""SQLite and PostgreSQL agree."""',
        "facts = {'dialect': database.kind, 'sqlite': sqlite3.sqlite_version}",
        "NEW = insert_or_ignore(tenant)\nconnection.execute(NEW.on(connection), row)",
        "def upserted(table) -> PerDialect[Insert]: ...",
    ],
)
def test_dialect_neutral_code_is_not_reported(source: str):
    assert not asks(source)
