"""Lists all commands and imports each one only when it is called, so that `footnote --help` starts fast."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command's module in `app.cli` and the first sentence of its help."""

    module: str
    help: str


# A module has `register`, which adds its commands to an application, or `commands`, a group named as here.
COMMANDS = {
    "serve": CommandEntry("serve", "Start the server."),
    "worker": CommandEntry(
        "serve", "Ingest documents beside other processes; answers /healthz, /readyz and /metrics alone."
    ),
    "migrate": CommandEntry("serve", "Upgrade the database to the newest schema."),
    "ingest": CommandEntry("ingest", "Upload files and wait until each is indexed, or failed with a reason."),
    "documents": CommandEntry("documents", "List documents, newest first, with the reason for each failure."),
    "delete": CommandEntry(
        "documents", "Delete documents permanently: original files, text and vectors of all versions."
    ),
    "compare": CommandEntry(
        "compare", "Compare two versions of a document, or two documents: what was added, removed, altered or moved."
    ),
    "verify": CommandEntry(
        "verify", "Verify the receipt of an answer, without a server, a network or a data directory."
    ),
    "ask": CommandEntry(
        "ask", "Ask your documents. The answer streams; its footnotes follow with file, page and quoted passage."
    ),
    "table": CommandEntry(
        "table", "Ask the same questions of many documents, and write a CSV with a row for each document."
    ),
    "search": CommandEntry("ask", "Find passages without generating an answer."),
    "audit": CommandEntry("audit", "List administrators' actions, newest first."),
    "check": CommandEntry(
        "check", "Check versions, models, database, files and index; exit status 1 when something is wrong."
    ),
    "backup": CommandEntry(
        "backup",
        "Save documents, original files, key hashes and the ledger into one file, also while the server runs.",
    ),
    "restore": CommandEntry(
        "backup",
        "Restore a data directory from a backup. Stop the server first. All checksums are verified before any change.",
    ),
    "reembed": CommandEntry(
        "reembed", "Embed all documents again with the configured embedder, beside the vectors in use, and swap."
    ),
    "eval": CommandEntry("evaluate", "Measure retrieval, context compression and answers on your own question sets."),
    "eval-injections": CommandEntry(
        "injections",
        "Write instructions into documents, ask questions of them, and count how often the instructions win.",
    ),
    "budgets": CommandEntry("budgets", "Budgets: the most that keys, users and tenants may spend."),
    "doctor": CommandEntry("doctor", "Say what runs here and what is wrong with it, without names, texts or secrets."),
    "mcp": CommandEntry("mcp", "Let an assistant search and ask through the Model Context Protocol."),
    "usage": CommandEntry("usage", "Reports of tokens and costs, by user, key, model and document."),
    "keys": CommandEntry("keys", "API keys."),
    "tenants": CommandEntry("tenants", "Tenants of the installation."),
    "users": CommandEntry("users", "Users of your tenant."),
    "limits": CommandEntry("limits", "Rate limits and concurrency limits of keys and tenants."),
    "models": CommandEntry("models", "The default models, and larger ones."),
    "prices": CommandEntry("prices", "Prices of models' tokens."),
}


class CommandGroup(TyperGroup):
    """The group of all commands. Listing a command needs only its name and help; calling it imports its module."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer's own context
        """Command names in the order of `COMMANDS`, then commands added elsewhere."""
        return list(dict.fromkeys([*COMMANDS, *super().list_commands(ctx)]))

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # as above
        """The command, or a placeholder with its name and help while commands are only listed."""
        if cmd_name not in self.commands and cmd_name in COMMANDS:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name].help)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]  # as above
        """Imports the called command and returns it with the remaining arguments."""
        name = args[0]
        if name not in self.commands and name in COMMANDS:
            self.commands[name] = load(name)
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """Imports a command of `COMMANDS`."""
    module = import_module(f"app.cli.{COMMANDS[name].module}")
    if hasattr(module, "register"):
        alone = typer.Typer(callback=_nothing)  # with a callback it is a group, however few commands there are
        module.register(alone)
    else:
        alone = typer.Typer(callback=_nothing)
        alone.add_typer(module.commands, name=name)
    return typer.main.get_group(alone).commands[name]


def _nothing() -> None:
    """Commands of their own."""
