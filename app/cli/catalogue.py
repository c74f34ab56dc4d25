"""The commands by name, each imported when it is called: `footnote --help` imports none of them."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: the module of `app.cli` that has it, and the first sentence of its help."""

    module: str
    help: str


# A module has `register`, which adds its commands to an application, or `commands`, a group named as here.
COMMANDS = {
    "serve": Entry("serve", "Start the server."),
    "migrate": Entry("serve", "Bring the database to the newest schema."),
    "ingest": Entry("ingest", "Upload files and wait until each is indexed, or failed with a reason."),
    "documents": Entry("documents", "List documents, newest first, with the reason why a failed one failed."),
    "delete": Entry("documents", "Delete documents for good: originals, text and vectors, all versions."),
    "ask": Entry(
        "ask", "Ask your documents; the answer streams, its footnotes follow with file, page and quoted passage."
    ),
    "search": Entry("ask", "Find passages; nothing is generated."),
    "audit": Entry("audit", "What administrators did, the newest first."),
    "check": Entry(
        "check", "Look at settings, database, files, index and models; exit status 1 when something is wrong."
    ),
    "backup": Entry(
        "backup",
        "Save everything into one file, while the server runs or not: documents, originals, keys' hashes, the ledger.",
    ),
    "restore": Entry(
        "backup",
        "Make a data dir of a backup. The server must be stopped; every checksum is verified before anything changes.",
    ),
    "reembed": Entry(
        "reembed", "Embed everything anew with the embedder the settings ask for, beside the vectors in use, and swap."
    ),
    "eval": Entry(
        "evaluate", "Measure how well passages are found, kept and answered from, on your own question sets."
    ),
    "eval-injections": Entry(
        "injections",
        "Write instructions into documents, ask questions of them, and count how often the instructions win.",
    ),
    "budgets": Entry("budgets", "What may be spent."),
    "doctor": Entry("doctor", "Say what runs here and what is wrong with it, without names, texts or secrets."),
    "mcp": Entry("mcp", "Let an assistant search and ask, by the Model Context Protocol."),
    "usage": Entry("usage", "What was spent, by whom, on what."),
    "keys": Entry("keys", "API keys."),
    "tenants": Entry("tenants", "Tenants of the installation."),
    "users": Entry("users", "Users of your tenant."),
    "limits": Entry("limits", "What keys and tenants may take in a minute, and at once."),
    "models": Entry("models", "The default models."),
    "prices": Entry("prices", "What models' tokens cost."),
}


class Catalogue(TyperGroup):
    """The group of all commands: a command that is only listed is its name and help, one that is called is imported."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer's own context
        """Names, in the order of `COMMANDS`; what was added otherwise comes last."""
        return list(dict.fromkeys([*COMMANDS, *super().list_commands(ctx)]))

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # as above
        """The command, or what stands for it where it is only listed."""
        if cmd_name not in self.commands and cmd_name in COMMANDS:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name].help)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]  # as above
        """The command that is called, imported, and what is left of the arguments."""
        name = args[0]
        if name not in self.commands and name in COMMANDS:
            self.commands[name] = load(name)
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """The command of `COMMANDS`, imported."""
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
