"""What probes have measured, kept as files: by a key that changes with the model, how it is loaded, and the cases."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from app.answering.generating.model_class import ASKING
from app.answering.generating.prompt_layout import LAYOUT
from app.models.folder import resolve
from app.probing.cases import cases_digest
from app.probing.reading import ModelReading, Share
from app.settings import Settings

_WEIGHTS = (".safetensors", ".gguf", ".bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a probe measured: `model` as the engine calls it, `measured_at` in Unix seconds."""

    model: str
    measured_at: float
    reading: ModelReading


class ProbeResults:
    """Results in a folder, one file each.

    >>> results = ProbeResults(settings.data_dir / "probes")
    >>> results.keep(key, result)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> ProbeResult | None:
        """The result of a key; None where there is none, or where its file is damaged."""
        try:
            found = json.loads(self._file(key).read_text(encoding="utf-8"))
            reading = {name: Share(int(count), int(of)) for name, (count, of) in found["reading"].items()}
            return ProbeResult(
                model=str(found["model"]), measured_at=float(found["measured_at"]), reading=ModelReading(**reading)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def keep(self, key: str, result: ProbeResult) -> None:
        """Write a result in place of an earlier one.

        Raises:
            OSError: It could not be written.
        """
        reading = {name: (share["count"], share["of"]) for name, share in asdict(result.reading).items()}
        written = {"model": result.model, "measured_at": result.measured_at, "reading": reading}
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._file(key).with_suffix(".new")
        draft.write_text(json.dumps(written, indent=1), encoding="utf-8")
        draft.replace(self._file(key))

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def kept_result(settings: Settings) -> ProbeResult | None:
    """What a probe measured of the configured generator; None where none has.

    Raises:
        SetupError: The generator is not on this machine.
    """
    return results_of(settings).find(probe_key(settings))


def results_of(settings: Settings) -> ProbeResults:
    """The results of an installation."""
    return ProbeResults(settings.data_dir / "probes")


def described(reading: ModelReading) -> str:
    """What was measured, in a sentence."""

    def share(found: Share) -> str:
        return f"{found.count} of {found.of}"

    return (
        f"class {reading.model_class}. It reads {share(reading.reads)} facts, joins {share(reading.joins)} pairs of "
        f"sources, writes {share(reading.forms)} lists and tables, refuses {share(reading.refuses)} questions that the "
        f"sources answer, and declines {share(reading.declines)} that they do not."
    )


def probe_key(settings: Settings) -> str:
    """Names what a probe measures: the model and its tokenizer, its number format, the prompts and the cases.

    Of weights, the size and the time of the last change count and not the content, which takes seconds to read. A
    remote server is known by its URL and the name of its model.

    Raises:
        SetupError: The generator is not on this machine.
    """
    chat = settings.remote_api == "chat"  # then no model of this machine is used
    source = settings.remote_api if chat else resolve(settings.generator, models_dir=settings.models_dir)
    digest = hashlib.sha256()
    wordings = [repr(asking.wording) for asking in ASKING.values()]
    loaded = (settings.remote_url, settings.remote_model, settings.adapter, settings.weights, settings.dtype)
    for part in (cases_digest(), LAYOUT, settings.device, *map(str, loaded), *wordings, *_parts_of(Path(source))):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:32]


def _parts_of(source: Path) -> list[str]:
    """What a model's files are known by; the name alone of a model that is in no folder of its own."""
    if not source.is_dir():
        return [str(source)]
    parts = []
    for file in sorted(path for path in source.iterdir() if path.is_file()):
        if file.suffix in _WEIGHTS:
            found = file.stat()
            parts.append(f"{file.name} {found.st_size} {found.st_mtime_ns}")
        else:
            parts.append(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}")
    return parts
