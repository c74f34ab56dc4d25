"""How entangled the code is, in numbers that only fall: a change that lowers one lowers its limit here too.

A room of `app.answering` is a module or a sub-package of it. Its floor is one more than the highest floor it imports.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

import grimp
import pytest

from app.db.tables.usage_columns import Measures

ROOT = Path(__file__).resolve().parents[2]
ANSWERING = "app.answering"
PACKAGES = ("app", "ingestion", "retrieval", "generation")

LIMITS = {
    "rooms": 19,
    "arrows between rooms": 78,
    "floors of rooms": 8,
    "floors of files": 9,
    "most arguments of a constructor": 8,
    "functions handed down that announce": 0,
    "places that bill an answer": 0,
    "places where SQL knows roles": 0,
    "class names used twice": 0,
    "modules that look for something in an answer's text": 2,
    "modules that list the counts of usage": 0,
    "modules outside app.server that import an adapter": 0,
    "modules that take the path of an original": 0,
}
BILLING = {"metered", "reservation", "reserve", "Reservation", "settle", "embed_query"}
BILLERS = {"metering/meter.py", "metering/settler.py", "retrieving/question_vectors.py"}
"""Modules of `app.answering` that are there to call models and to bill them."""

LOOKING = {
    *("split", "splitlines", "partition", "rpartition", "startswith", "endswith"),
    *("find", "rfind", "index", "rindex", "match", "fullmatch", "search", "finditer", "findall", "sub"),
}
"""Methods of texts and patterns that find a structure."""

Arrows = Mapping[str, set[str]]
Node = TypeVar("Node", bound=ast.AST)


@cache
def imports() -> dict[str, frozenset[str]]:
    """Each module of `app.answering` with the modules of it that it imports."""
    graph = grimp.build_graph("app", cache_dir=None)
    modules = {module for module in graph.modules if module.startswith(f"{ANSWERING}.")}
    return {module: frozenset(graph.find_modules_directly_imported_by(module) & modules) for module in modules}


def by_room() -> Arrows:
    arrows: dict[str, set[str]] = defaultdict(set)
    for module, imported in imports().items():
        arrows[room(module)] |= {room(other) for other in imported} - {room(module)}
    return arrows


def room(module: str) -> str:
    return module.removeprefix(f"{ANSWERING}.").partition(".")[0]


def floors(arrows: Mapping[str, Iterable[str]]) -> int:
    """The number of floors; fails where rooms import each other in a circle."""

    @cache
    def floor(place: str) -> int:
        return 1 + max((floor(below) for below in arrows[place]), default=0)

    return max(floor(place) for place in arrows)


@cache
def trees(*folders: str) -> dict[str, ast.Module]:
    """The syntax tree of each file in folders; training is not part of what serves."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not {"node_modules", "tuning"} & {*path.parts}
    }


def found(kind: type[Node], *folders: str) -> Iterator[tuple[str, Node]]:
    for path, tree in trees(*folders).items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield path, node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    args = function.args
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def constructors() -> dict[str, int]:
    """How many arguments each written constructor takes, without `self`."""
    return {
        f"{path}:{written.name}": len(parameters(part)) - 1
        for path, written in found(ast.ClassDef, "app", "ingestion", "retrieval")
        for part in written.body
        if isinstance(part, ast.FunctionDef) and part.name == "__init__"
    }


def announcements() -> list[str]:
    """Parameters that are functions called to tell their owner something: they return nothing."""
    return [
        f"{path}:{function.name}({parameter.arg})"
        for path, function in found(ast.FunctionDef, ANSWERING.replace(".", "/"))
        for parameter in parameters(function)
        if parameter.annotation is not None
        and "Callable[" in (annotation := ast.unparse(parameter.annotation))
        and ", None]" in annotation
    ]


def billings() -> list[str]:
    """Calls by which a module of `app.answering` bills a model, or embeds a question, by itself."""
    return [
        f"{path}:{call.lineno}"
        for path, call in found(ast.Call, ANSWERING.replace(".", "/"))
        if path.removeprefix("app/answering/") not in BILLERS and called(call) in BILLING
    ]


def called(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return None


def roles_in_sql() -> list[str]:
    return [
        f"{path}:{node.lineno}"
        for path, node in found(ast.Attribute, "app/db")
        if isinstance(node.value, ast.Name) and node.value.id == "Role"
    ]


def doubled_names() -> dict[str, list[str]]:
    """Names of public classes that stand for more than one thing."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, written in found(ast.ClassDef, *PACKAGES):
        if not written.name.startswith("_"):
            places[written.name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def lookers() -> set[str]:
    """Modules that find out from an answer's text what its parts say; stored answers from before have no parts."""

    def is_text(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and node.attr in {"text", "answer"}
            and isinstance(node.value, ast.Name)
            and node.value.id in {"answer", "turn", "finished", "given", "said"}
        )

    return {
        path
        for path, call in found(ast.Call, *PACKAGES)
        if called(call) in LOOKING and any(is_text(node) for part in (call.func, *call.args) for node in ast.walk(part))
    }


def listers() -> set[str]:
    """Modules that name more than half of the ledger's counts, beside the schema that declares them."""
    counts = {*Measures._fields}

    def named(node: ast.AST) -> set[str]:
        found = (getattr(node, part, None) for part in ("value", "attr", "arg", "id"))
        return {name for name in found if isinstance(name, str)} & counts

    return {
        path
        for path, tree in trees("app").items()
        if path != "app/db/tables/usage_columns.py"
        and len({*chain.from_iterable(map(named, ast.walk(tree)))}) > len(counts) // 2 + 1
    }


@cache
def importers_of_adapters() -> set[str]:
    """Modules of `app` that name what fills a port; only the composition root may."""
    graph = grimp.build_graph("app", cache_dir=None)
    adapters = {module for module in graph.modules if module.startswith("app.documents.adapters.")}
    assert adapters, "there are adapters to look for"
    importers = {module for adapter in adapters for module in graph.find_modules_that_directly_import(adapter)}
    return {module for module in importers - adapters if not module.startswith("app.server.")}


def takers_of_paths() -> set[str]:
    """Modules outside the adapters that find originals by paths; a file is had by `local_copy` alone."""
    return {
        path
        for path, call in found(ast.Call, "app")
        if not path.startswith("app/documents/adapters/")
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"path", "readable"}
        and ast.unparse(call.func.value).rpartition(".")[2].lstrip("_") in {"files", "originals", "store"}
    }


COUNTED = {
    "rooms": lambda: len(by_room()),
    "arrows between rooms": lambda: sum(len(others) for others in by_room().values()),
    "floors of rooms": lambda: floors(by_room()),
    "floors of files": lambda: floors(imports()),
    "most arguments of a constructor": lambda: max(constructors().values()),
    "functions handed down that announce": lambda: len(announcements()),
    "places that bill an answer": lambda: len(billings()),
    "places where SQL knows roles": lambda: len(roles_in_sql()),
    "class names used twice": lambda: len(doubled_names()),
    "modules that look for something in an answer's text": lambda: len(lookers()),
    "modules that list the counts of usage": lambda: len(listers()),
    "modules outside app.server that import an adapter": lambda: len(importers_of_adapters()),
    "modules that take the path of an original": lambda: len(takers_of_paths()),
}


@pytest.mark.parametrize("what", COUNTED)
def test_the_code_is_as_entangled_as_its_limit_says(what):
    assert COUNTED[what]() == LIMITS[what], f"{what}: lower the limit where the count fell; where it rose, untangle"


def test_floors_are_counted_from_what_is_imported():
    assert floors({"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set()}) == 3


def test_a_circle_has_no_floors():
    with pytest.raises(RecursionError):
        floors({"a": {"b"}, "b": {"a"}})
