"""app.tuning.evidence_reader.from_pack: stages, what is written, and which packages it needs."""

import json
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from app.tuning.evidence_reader.from_pack import main
from app.tuning.evidence_reader.mixture import source_of
from app.tuning.evidence_reader.pack import near_misses_of, parts_of
from app.tuning.evidence_reader.packed import MIXTURE, NEAR_MISSES, PAIRS, Pack
from app.tuning.evidence_reader.publish import training_of
from app.tuning.evidence_reader.training import TRAINED, Recipe
from tests.app.tuning.evidence_reader.shelves import TOKENIZER, base_of, write_set

SPECIALS = (TOKENIZER.token_to_id("[CLS]"), TOKENIZER.token_to_id("[SEP]"))
ABSENT = ("aiosqlite", "alembic", "faiss", "fastapi", "pydantic", "pydantic_settings", "sqlalchemy", "structlog")
ROOT = Path(__file__).parents[4]
IMPORT = f"""
import sys
sys.modules.update(dict.fromkeys({ABSENT!r}))  # None: importing it fails
import app.tuning.evidence_reader.from_pack
"""


def test_it_needs_no_package_of_the_service():
    done = subprocess.run([sys.executable, "-c", IMPORT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_stage_goes_on_from_the_last_and_is_measured(tmp_path, capsys):
    source = source_of(write_set(tmp_path / "squad2-train-unans", rooms=7, written=True), held_back=False)
    parts = parts_of([source], TOKENIZER, passes={MIXTURE: 0.4, PAIRS: 0.5}, near=2, seeds=[5])
    held = near_misses_of(source, TOKENIZER, most=20)
    Pack.of({**parts, NEAR_MISSES: held}, specials=SPECIALS).write(tmp_path / "small.pack")
    base = base_of(tmp_path / "tiny")
    stages = ["--stage", "pairs", "2", "1e-3", "--stage", "mixture,pairs", "3", "1e-3"]
    main([str(tmp_path / "small.pack"), str(tmp_path / "out"), "--base", str(base), "--device", "cpu", *stages])
    trained = tmp_path / "out"

    rows = [json.loads(line) for line in (trained / "figures.jsonl").read_text().splitlines()]
    assert [(row["stage"], row["part"]) for row in rows] == [
        (stage, NEAR_MISSES) for stage in ("before", "0-pairs", "1-mixture-pairs")
    ]
    assert rows[0]["recipe"] is None
    assert rows[1]["recipe"]["pairs"] and rows[2]["recipe"]["passes"] == 3
    first, last = (load_file(trained / row["stage"] / TRAINED) for row in rows[1:])
    assert first.keys() == last.keys() >= {"head.weight", "tag.weight"}
    assert any(not torch.equal(one, last[name]) for name, one in first.items())
    told = capsys.readouterr().out
    training = training_of(trained / "1-mixture-pairs", reader="")
    assert training.packed
    assert (training.recipe, training.groups) == (
        Recipe(passes=3, learning_rate=1e-3, head_learning_rate=1e-2, seed=42, near=2),
        4 * Recipe().groups,
    )
    assert "1-mixture-pairs step 1/" in told and "groups/s" in told
