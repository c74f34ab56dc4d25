"""`footnote models fetch|list|probe|add`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from app.settings import Settings, load_settings

_READABLE_BY_ALL = 0o022

Found = TypeVar("Found")

commands = typer.Typer(help="The default models, and larger ones.", no_args_is_help=True)


@commands.command()
def fetch(
    verify: Annotated[bool, typer.Option("--verify", help="Also check the SHA-256 of what is there already.")] = False,
) -> None:
    """Install the default embedder and generator on this machine; installed models are kept.

    Where FOOTNOTE_GENERATOR is extractive, only the embedder is installed.
    """
    from app.models.catalog import DEFAULT_MODELS, ModelTask
    from app.models.fetch import fetch as fetch_model

    os.umask(_READABLE_BY_ALL)  # models are public: an image fetches as root and serves as another user
    console = Console()
    settings = load_settings()
    models_dir = settings.models_dir
    for model in DEFAULT_MODELS:
        if settings.extractive and model.kind is ModelTask.GENERATOR:
            continue
        with console.status(model.name) as status:
            folder = fetch_model(
                model,
                models_dir=models_dir,
                verify=verify,
                on_progress=status.update,
            )
        console.print(Text(f"{model.name} ({model.kind}, {model.licence}): {folder}"), soft_wrap=True)


@commands.command("list")
def list_models(
    fit: Annotated[
        bool, typer.Option("--fit", help="List larger models instead, and whether this machine has memory for them.")
    ] = False,
) -> None:
    """List the default models, adapters, readers and judges with SHA-256 check, use, and memory per sequence."""
    if fit:
        _list_larger(load_settings())
        return
    from app.errors import SetupError
    from app.models.adapter import adapter_status, configured_adapter
    from app.models.candidate_judge import configured_judge, judge_status
    from app.models.folder import status
    from app.models.memory import sequence_memory
    from app.models.span_reader import configured_reader, reader_status

    settings = load_settings()
    table = Table("model", "kind", "licence", "size", "state", box=None, pad_edge=False)
    for model in status(settings.models_dir):
        state = "sound" if model.sound else "damaged: run `footnote models fetch`" if model.present else "not fetched"
        table.add_row(model.name, model.kind, model.licence, f"{model.bytes / 1e6:.0f} MB", state)
    troubles = []

    def found_by(look: Callable[[Settings], Found | None], kind: str) -> Found | None:
        try:
            return look(settings)
        except SetupError as error:
            troubles.append(f"{kind}: {error}")
            return None

    adapter = found_by(configured_adapter, "Adapter")
    reader = found_by(configured_reader, "Reader")
    judge = found_by(configured_judge, "Judge")
    for kind, loaded, folders in (
        ("adapter", adapter, adapter_status(settings.adapter)),
        ("reader", reader, reader_status(settings.reader)),
        ("judge", judge, judge_status(settings.judge)),
    ):
        for found in folders:
            in_use = loaded is not None and loaded.folder == str(found.folder)
            state = f"sound, {'loaded' if in_use else 'not loaded'}" if found.sound else "damaged"
            table.add_row(f"{found.base}+{found.name}", kind, found.licence, f"{found.bytes / 1e6:.0f} MB", state)
    console = Console()
    console.print(table)
    if settings.extractive:
        generator = "no generator: answers are quoted (extractive)"
    elif settings.remote_url:
        tokenizer = "messages" if settings.remote_api == "chat" else f"tokenizer {settings.generator}"
        generator = f"generator {settings.remote_model} at a remote server, {tokenizer}"
    else:
        generator = f"generator {settings.generator}" + (f" with adapter {adapter.name}" if adapter else "")
    if (reads := _reads(settings)) is not None:
        generator += f", {reads}"
    helpers = [f"{kind} {one.name}" for kind, one in (("reader", reader), ("judge", judge)) if one]
    embedder = f"embedder {settings.embedder}" + (f" with {' and '.join(helpers)}" if helpers else "")
    console.print(Text(f"In use: {embedder}, {generator}"), soft_wrap=True)
    for trouble in troubles:
        console.print(Text(trouble), soft_wrap=True)
    if not settings.remote_url and not settings.extractive:
        try:
            memory = str(sequence_memory(settings))
        except SetupError as error:
            memory = str(error)
        console.print(Text(f"Keys and values: {memory}"), soft_wrap=True)


@commands.command()
def probe() -> None:
    """Measure how well the configured generator reads, and so whether quotes or the model answer.

    It is asked forty questions about invented documents; its tokens are on the ledger. A server does that by itself,
    once, when it starts with a model that is not known; it must not run meanwhile.
    """
    from app.errors import SetupError
    from app.probing.results import described
    from app.server.bootstrap import build

    settings = load_settings()
    if settings.extractive:
        raise SetupError("There is no language model to measure: FOOTNOTE_GENERATOR is extractive.")
    with Progress(transient=True) as progress:
        task = progress.add_task("Loading the model", total=None)
        with build(settings) as state:
            found = state.serving.probe
            assert found is not None, "a language model is loaded"
            result = found.measure(
                lambda done, total: progress.update(task, description="Asking", completed=done, total=total)
            )
    console = Console()
    console.print(Text(f"{result.model}: {described(result.reading)}"), soft_wrap=True)
    if (known := settings.known_class) is not None:
        console.print(Text(f"It is used as {known}, which is set, or known of the default model."), soft_wrap=True)


@commands.command()
def add(
    model: Annotated[
        str,
        typer.Argument(help="ORGANISATION/NAME of the Hugging Face hub, with @REVISION if you like, or a GGUF file."),
    ],
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="Accept the terms of a licence that does not allow every use.")
    ] = False,
) -> None:
    """Download a larger language model into FOOTNOTE_MODELS_DIR, check it, and say what to set.

    Weights are safetensors alone, compared with the digests of the hub. HF_TOKEN is sent where it is set, and
    HF_ENDPOINT names another hub. A GGUF file is converted once.
    """
    from app.errors import SetupError
    from app.models.gguf_models import SUFFIX, add_gguf
    from app.models.hub import download, look_up

    console = Console()
    settings = load_settings()
    if model.lower().endswith(SUFFIX):
        os.umask(_READABLE_BY_ALL)
        with console.status("Converting the file"):
            added = add_gguf(Path(model).expanduser(), models_dir=settings.models_dir)
        console.print(Text(f"It is in {added.folder}. Licence, as the file says: {added.licence}."), soft_wrap=True)
        _say_how_to_use(added.setting, settings, console)
        return
    found = look_up(model)
    size = f"{found.bytes / 1e9:.1f} GB"
    if found.has_terms and not accept_terms:
        raise SetupError(
            f"{found.id} has the licence {found.licence}, whose terms are at its page of the hub. "
            "Read them, and pass --accept-terms if you accept them."
        )
    console.print(Text(f"{found.id}, commit {found.commit[:12]}: licence {found.licence}, {size}."), soft_wrap=True)
    os.umask(_READABLE_BY_ALL)
    folder = download(found, models_dir=settings.models_dir)
    console.print(Text(f"It is in {folder}."), soft_wrap=True)
    _say_how_to_use(found.id, settings, console)


def _say_how_to_use(setting: str, settings: Settings, console: Console) -> None:
    """Print the memory that a model takes, and what to set."""
    from app.models.installed import generators

    told = generators(settings.model_copy(update={"generator": setting, "remote_url": ""}))
    for one in told.installed:
        if one.setting == setting:
            fits = "fits" if one.fits else "does not fit"
            place = "the GPU" if told.machine.gpu else "this machine"
            room = f"{place} has {told.machine.available_bytes / 1e9:.1f} GB free"
            line = f"It takes about {one.needed_bytes / 1e9:.1f} GB of memory and {fits}: {room}."
            console.print(line, highlight=False, soft_wrap=True)
    console.print(
        Text(
            f"To use it, set FOOTNOTE_GENERATOR={setting}. A server that starts with it measures how well it reads; "
            "`footnote models probe` does so beforehand."
        ),
        soft_wrap=True,
    )


def _list_larger(settings: Settings) -> None:
    from app.models.installed import generators

    found = generators(settings)
    table = Table(Column("model", overflow="fold"), "parameters", "licence", "memory", "fits", box=None, pad_edge=False)
    for model, needed, fits in found.offered:
        answer = "yes" if fits else "no"
        table.add_row(model.id, f"{model.billions} billion", model.licence, f"about {needed / 1e9:.0f} GB", answer)
    console = Console()
    console.print(table)
    where = "The GPU" if found.machine.gpu else "This machine"
    console.print(f"{where} has {found.machine.available_bytes / 1e9:.1f} GB of memory free.", highlight=False)
    console.print(
        "`footnote models add MODEL` downloads one. None was measured with Footnote, which measures yours.",
        soft_wrap=True,
    )


def _reads(settings: Settings) -> str | None:
    """How well the generator reads, as far as that is known; None without one."""
    from app.errors import SetupError
    from app.probing.results import kept_result

    if settings.extractive:
        return None
    if (known := settings.known_class) is not None:
        return f"class {known}"
    try:
        result = kept_result(settings)
    except SetupError:
        return None
    if result is None:
        return "class not measured yet: quotes answer until `footnote models probe` or a start of the server has"
    return f"class {result.reading.model_class}, measured"
