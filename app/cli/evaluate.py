"""`footnote eval`: measures retrieval, context and answers on your own questions.

Unlike the other commands it uses no server: it builds its own application over a scratch
data dir, so a running server is not affected.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from app.cli.progress import Bar
from app.errors import SetupError
from app.settings import load_settings
from retrieval.types import SearchMode

if TYPE_CHECKING:
    from app.evaluation.floor import Floor
    from app.evaluation.record import Run
    from app.evaluation.types import Options
    from app.server.state import State


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command("eval")(evaluate)


def evaluate(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders: documents with questions.csv, or question sets in the BEIR layout.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for run.json and report.html.")] = Path("evaluation"),
    questions: Annotated[int, typer.Option(min=1, help="Most questions a set; a sample by seed beyond that.")] = 600,
    seed: Annotated[int, typer.Option(help="Of the sample and the intervals.")] = 0,
    modes: Annotated[str, typer.Option(help="Searches to rank with; the first is the one that is used.")] = "hybrid",
    top_k: Annotated[int, typer.Option(min=1, help="Documents ranked.")] = 20,
    context_top_k: Annotated[int, typer.Option(min=1, help="Chunks that become the context.")] = 8,
    answers: Annotated[
        bool | None, typer.Option("--answers/--no-answers", help="Answer too; default: where there is a questions.csv.")
    ] = None,
    answer_questions: Annotated[int, typer.Option(min=1, help="Most questions a set to answer.")] = 100,
    answers_only: Annotated[bool, typer.Option("--answers-only", help="Answers, no rankings or contexts.")] = False,
    presented: Annotated[
        int | None,
        typer.Option(
            min=1, help="Ask of this many documents: the gold ones and the best ranked others; and of others."
        ),
    ] = None,
    floor: Annotated[
        bool, typer.Option("--floor/--no-floor", help="Compare answers with the extractive reader's.")
    ] = True,
    concurrency: Annotated[
        int, typer.Option(min=1, max=32, help="Questions answered at a time; latencies are honest at 1.")
    ] = 1,
    abstention_threshold: Annotated[
        float | None, typer.Option(min=1e-6, max=1, help="Probability of refusing that refuses; 1 answers everything.")
    ] = None,
    strict: Annotated[
        bool | None, typer.Option("--strict/--no-strict", help="Leave out what is not verified; default: as set.")
    ] = None,
    context_tokens: Annotated[int | None, typer.Option(min=1, help="Token budget of the sources.")] = None,
    output_tokens: Annotated[int | None, typer.Option(min=1, help="Token limit of an answer.")] = None,
    by: Annotated[str | None, typer.Option(help="Scores by this metadata of the queries; default: lang.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Data dir to keep and use again; default: a temporary one.")] = None,
    compare: Annotated[Path | None, typer.Option(help="An earlier run.json to compare with.")] = None,
) -> None:
    """Measure retrieval, context compression and answers on your own question sets."""
    from app.evaluation.dataset import read_questions
    from app.evaluation.question_folder import is_question_folder
    from app.evaluation.record import read_run
    from app.evaluation.run import evaluate as run_evaluation
    from app.evaluation.scratch import scratch_application
    from app.evaluation.types import Options

    settings = load_settings()
    question_sets = [read_questions(folder) for folder in folders]
    if answers is None:
        answers = any(map(is_question_folder, folders))
    options = Options(
        questions=questions,
        seed=seed,
        modes=_modes(modes),
        top_k=top_k,
        context_top_k=context_top_k,
        answers=answers or answers_only or presented is not None,
        answer_questions=answer_questions,
        answers_only=answers_only,
        presented=presented,
        concurrency=concurrency,
        abstention_threshold=abstention_threshold,
        strict=settings.strict if strict is None else strict,
        context_tokens=context_tokens,
        output_tokens=output_tokens,
        by=by,
    )
    earlier = read_run(compare) if compare is not None else None
    console = Console()
    for found in question_sets:
        console.print(Text(f"{found.name}: {len(found.documents):,} documents, {len(found.questions):,} questions"))
    console.print(Text(_plan(options), style="dim"))
    out.mkdir(parents=True, exist_ok=True)
    with _data_dir(keep) as data_dir, Bar(console) as bar:
        bar("loading the models", 0, 1)
        with scratch_application(settings, data_dir=data_dir) as state:
            reader = _floor(state) if floor and options.answers else None
            run = run_evaluation(state, question_sets, options, floor=reader, on_progress=bar)
    if earlier is not None:
        from app.evaluation.comparison import compare as compare_runs

        run = run.model_copy(update={"comparison": compare_runs(earlier, run, seed=seed)})
    _write(run, out, console)


def _floor(state: "State") -> "Floor | None":
    """The floor of quoted sentences; None where the server answers by quoting anyway."""
    from app.evaluation.floor import ExtractiveFloor

    assert state.serving.models is not None, "the scratch application has models"
    if state.settings.extractive:
        return None
    return ExtractiveFloor(state.serving.models.embedder)


def _write(run: "Run", out: Path, console: Console) -> None:
    from app.evaluation.report.page import html_report
    from app.evaluation.table import tables

    (out / "run.json").write_text(run.model_dump_json(indent=1) + "\n", encoding="utf-8")
    (out / "report.html").write_text(html_report(run), encoding="utf-8")
    for table in tables(run):
        console.print(table)
        console.print()
    for found in run.sets:
        for note in found.notes:
            console.print(Text(f"{found.name}: {note}", style="dim"))
    if run.comparison is not None:
        for note in run.comparison.notes:
            console.print(Text(note, style="dim"))
    console.print(Text(f"{out / 'run.json'}  {out / 'report.html'}"))


def _plan(options: "Options") -> str:
    """Describes the planned questions in one sentence."""
    if not options.answers:
        return f"At most {options.questions} questions a set, seed {options.seed}; none is answered."
    ranked = "" if options.answers_only else f"at most {options.questions} questions a set are ranked, "
    answered = f"at most {options.answer_questions} a set are answered"
    sources = "" if options.presented is None else f", each from {options.presented} documents"
    return f"Seed {options.seed}; {ranked}{answered}{sources}."


def _modes(names: str) -> tuple[SearchMode, ...]:
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in {mode.value for mode in SearchMode}]
    if unknown or not chosen:
        raise SetupError("--modes takes hybrid, dense and lexical, separated by commas.")
    return tuple(SearchMode(name) for name in dict.fromkeys(chosen))


@contextmanager
def _data_dir(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="footnote-eval-") as folder:
        yield Path(folder)
