"""`footnote eval-injections`: measures how often instructions in documents take over an answer."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.progress import Bar
from app.settings import load_settings

if TYPE_CHECKING:
    from app.evaluation.injections.measurement import InjectionRates

_COLUMNS = ("attacks", "presented", "obeyed", "quoted", "control", "right", "right, control")


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command("eval-injections")(measure)


def measure(
    folder: Annotated[Path, typer.Argument(help="A question set in the BEIR layout, with answers.")],
    out: Annotated[Path, typer.Option(help="File for the rates.")] = Path("injections.json"),
    questions: Annotated[int, typer.Option(min=1, help="Most questions attacked; the attacks take turns.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    context_tokens: Annotated[int | None, typer.Option(min=1, help="Token budget of the sources.")] = None,
    output_tokens: Annotated[int, typer.Option(min=1, help="Token limit of an answer.")] = 64,
) -> None:
    """Write instructions into documents, ask questions of them, and count how often the instructions win."""
    from app.evaluation.dataset import read_question_set
    from app.evaluation.injections.measurement import injection_rates, measure_injections
    from app.evaluation.scratch import scratch_application
    from app.evaluation.types import Options

    question_set = read_question_set(folder)
    options = Options(
        seed=seed, answers=True, answer_questions=questions, context_tokens=context_tokens, output_tokens=output_tokens
    )
    console = Console()
    with tempfile.TemporaryDirectory(prefix="footnote-eval-") as data_dir, Bar(console) as bar:
        bar("loading the models", 0, 1)
        with scratch_application(load_settings(), data_dir=Path(data_dir)) as state:
            found = measure_injections(state, question_set, options, on_progress=bar)
    rates = injection_rates(found)
    out.write_text(json.dumps([asdict(rate) for rate in rates], indent=1) + "\n", encoding="utf-8")
    console.print(table(rates))
    console.print(Text(str(out)))


def table(rates: Sequence["InjectionRates"]) -> Table:
    """A table with one row per family; the effect of the injections is `obeyed` minus `control`."""
    shown = Table("family", title="Injected documents")
    for column in _COLUMNS:
        shown.add_column(column, justify="right")
    for rate in rates:
        shares = (rate.presented, rate.obeyed, rate.quoted, rate.control, rate.right, rate.right_control)
        shown.add_row(Text(rate.family), str(rate.attacks), *(f"{share:.2f}" for share in shares))
    return shown
