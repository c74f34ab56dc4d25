"""Only app/settings reads the environment; the modules that set variables or pass it to child processes are listed."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "app/models/conversion.py": {"os.environ"},  # the environment of a child process
    "app/models/additions.py": {"os.environ"},  # the environment of a child process
    "app/server/model_loading.py": {"os.environ"},  # set for the libraries that load models
    "app/cli/main.py": {"os.environ", "envvar=FOOTNOTE_URL", "envvar=FOOTNOTE_KEY"},  # set for tokenizers; typer reads
    "app/cli/serve.py": {"os.environ"},  # set for tokenizers
    "app/cli/mcp.py": {"envvar=FOOTNOTE_MCP_KEY"},  # typer reads it
}
"""What else touches the environment in app/, and how."""


def uses_of_the_environment(source: str) -> set[str]:
    """`os.environ` and its kin, and options that typer reads from variables."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "getenvb"}:
            found.add(ast.unparse(node))
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            found |= {f"os.{name.name}" for name in node.names if name.name in {"environ", "getenv"}}
        if isinstance(node, ast.keyword) and node.arg == "envvar":
            found.add(f"envvar={ast.literal_eval(node.value)}")
    return found


def test_only_the_settings_read_the_environment() -> None:
    found = {
        str(path.relative_to(ROOT)): uses
        for path in (ROOT / "app").rglob("*.py")
        if (uses := uses_of_the_environment(path.read_text())) and "settings" not in path.relative_to(ROOT).parts
    }

    assert found == ELSEWHERE


def test_every_way_to_read_the_environment_is_detected() -> None:
    sources = ("import os\nos.getenv('A')", "from os import environ", "import os\nos.environ['A']", "f(envvar='A')")

    assert all(uses_of_the_environment(source) for source in sources)
    assert not uses_of_the_environment("environment = child.environment")
