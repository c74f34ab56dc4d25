"""The benchmark's figures on the screen and as JSON, each section as soon as it ends."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

console = Console()


class Report:
    """Sections by name. Those the file has already are kept until they are measured again."""

    def __init__(self, machine: dict[str, Any], *, out: Path | None) -> None:
        """Print what the machine is; nothing is written before the first section.

        Args:
            machine: See `machine.description` and `machine.limits`.
            out: Where the JSON goes; None writes none.
        """
        kept = json.loads(out.read_text()) if out is not None and out.is_file() else {}
        self._machine, self._out = machine, out
        self._sections: dict[str, Any] = kept | {"machine": machine}
        console.print_json(data={"machine": machine})

    def measure(self, name: str, section: Callable[[], dict[str, Any]]) -> None:
        """Carry a section out, print it and write it."""
        with console.status(name):
            started = time.perf_counter()
            figures = section()
        self._sections[name] = figures | {
            "took_s": round(time.perf_counter() - started),
            "machine": {key: self._machine[key] for key in ("read_gb_s", "fp32_tflop_s")},
            "load_after": round(psutil.getloadavg()[0], 2),
        }
        console.print_json(data={name: self._sections[name]})
        if self._out is not None:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._out.write_text(json.dumps(self._sections, indent=2) + "\n")
