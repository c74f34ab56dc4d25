"""Finds every regular expression in the packages, by the calls of `re` in the syntax trees."""

import ast
import builtins
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "ingestion", "retrieval", "generation")
NOT_SERVED = ("app/tuning/",)  # training runs from a checkout, on the trainer's own data
SCANS = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
ANCHORED = frozenset({"match", "fullmatch"})
STAND_IN = "ab"  # for a value that a function puts into its pattern

_NAMED = re.compile(r"\b(?:re|regex)\b")

Pattern = re.Pattern[str] | re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class Use:
    """A compiled pattern and the methods that the code calls on it."""

    place: str
    pattern: Pattern
    methods: frozenset[str]


class NotResolvedError(Exception):
    """A call of `re` whose pattern was not found."""


@cache
def sources() -> list[Path]:
    """The modules that import `re`."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    served = (path for path in paths if not relative(path).startswith(NOT_SERVED) and "node_modules" not in path.parts)
    # A module without the word imports neither; to parse all of them takes seconds.
    named = (path for path in served if _NAMED.search(path.read_text(encoding="utf-8")))
    return [path for path in named if any(_imports_re(node) for node in ast.walk(_tree(path)))]


def relative(path: Path) -> str:
    """The path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def uses(path: Path) -> list[Use]:
    """Every pattern that a module makes.

    Raises:
        NotResolvedError: A call's pattern was not found, so that nothing checks it.
    """
    return list(_uses(_tree(path), module_of(path), relative(path), _calls_by_constant()))


def module_of(path: Path) -> ModuleType:
    """The module of a source file."""
    return importlib.import_module(_name_of(path))


def uses_in(source: str, module: ModuleType) -> list[Use]:
    """Every pattern of a module that is given as source."""
    tree = ast.parse(source)
    return list(_uses(tree, module, module.__name__, _calls_in(tree, module.__name__)))


def _name_of(path: Path) -> str:
    return relative(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports_re(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        assert node.module not in {"re", "regex"}, "import re whole, so that its calls are found"
    if not isinstance(node, ast.Import):
        return False
    assert all(alias.name != "regex" and not (alias.name == "re" and alias.asname) for alias in node.names)
    return any(alias.name == "re" for alias in node.names)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _uses(
    tree: ast.Module, module: ModuleType, place: str, calls: Mapping[tuple[str, str], frozenset[str]]
) -> Iterator[Use]:
    others = _calls_on_others(tree) or SCANS | ANCHORED
    for statement in tree.body:
        for node in ast.walk(statement):
            if not _is_call_of_re(node):
                continue
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            here = f"{place}:{node.lineno}"
            for pattern in _patterns(node, statement, module, here):
                if node.func.attr in SCANS | ANCHORED:
                    yield Use(here, pattern, frozenset({node.func.attr}))
                    continue
                names = [name for name, value in vars(module).items() if _same(value, pattern)]
                called = frozenset[str]().union(*(calls.get((module.__name__, name), frozenset()) for name in names))
                yield Use(f"{here} {' '.join(names)}".rstrip(), pattern, called or others)


def _same(value: object, pattern: Pattern) -> bool:
    return isinstance(value, re.Pattern) and value == pattern


def _is_call_of_re(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    owner = node.func.value
    return isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in SCANS | ANCHORED | {"compile"}


def _patterns(call: ast.Call, statement: ast.stmt, module: ModuleType, here: str) -> list[Pattern]:
    """The patterns that a call makes: by its arguments, or, in a comprehension, by what its statement assigns."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    argument = call.args[0] if call.args else given.get("pattern")
    assert isinstance(call.func, ast.Attribute)
    flags = given.get("flags") or (call.args[1] if call.func.attr == "compile" and len(call.args) > 1 else None)
    if argument is None:
        raise NotResolvedError(f"{here}: no pattern")
    if _unknown(argument, module) and isinstance(statement, ast.Assign | ast.AnnAssign):  # a comprehension's variable
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        if assigned := [pattern for name in names for pattern in patterns_in(getattr(module, name, None))]:
            return assigned
    try:
        return [re.compile(_value(argument, module), 0 if flags is None else _value(flags, module))]
    except (AttributeError, TypeError, re.error) as error:
        raise NotResolvedError(f"{here}: {ast.unparse(argument)}") from error


def patterns_in(value: object) -> list[Pattern]:
    """The compiled patterns in a value and in what it contains."""
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, Mapping):
        return [pattern for inner in value.values() for pattern in patterns_in(inner)]
    if isinstance(value, list | tuple | set | frozenset):
        return [pattern for inner in value for pattern in patterns_in(inner)]
    return []


def _unknown(node: ast.expr, module: ModuleType) -> frozenset[str]:
    """The names in an expression that only a running function or a comprehension knows."""
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return frozenset(names - vars(module).keys() - vars(builtins).keys())


def _value(node: ast.expr, module: ModuleType) -> Any:
    """The value of an expression, with `STAND_IN` for the names that only a running function knows."""
    known = vars(module) | dict.fromkeys(_unknown(node, module), STAND_IN)
    return eval(compile(ast.Expression(node), module.__name__, "eval"), known)


@cache
def _calls_by_constant() -> dict[tuple[str, str], frozenset[str]]:
    """The methods that are called on each constant, by its module and name, wherever it was imported."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "node_modules" in path.parts:
                continue
            for key, methods in _calls_in(_tree(path), _name_of(path)).items():
                found[key] = found.get(key, frozenset()) | methods
    return found


def _calls_in(tree: ast.Module, module: str) -> dict[tuple[str, str], frozenset[str]]:
    origin = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found: dict[tuple[str, str], frozenset[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in SCANS | ANCHORED and isinstance(node.value, ast.Name):
            key = origin.get(node.value.id, (module, node.value.id))
            found[key] = found.get(key, frozenset()) | {node.attr}
    return found


def _calls_on_others(tree: ast.Module) -> frozenset[str]:
    """The methods that are called on anything but a constant or `re`: on a pattern taken out of a collection.

    A `split` is almost always a string's.
    """
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in (SCANS | ANCHORED) - {"split"}
        and not (isinstance(node.value, ast.Name) and (node.value.id == "re" or node.value.id.isupper()))
    )
