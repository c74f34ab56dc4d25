"""generation.config refuses invalid settings by name."""

from typing import Any

import pytest

from generation.config import EngineConfig


@pytest.mark.parametrize(
    "setting",
    [
        {"max_running": 0},
        {"max_waiting": 0},
        {"max_waiting_tokens": 0},
        {"max_running": 9, "step_tokens": 8},
        {"context_window": 1},
        {"kv_cache_bytes": 0},
        {"block_tokens": 0},
        {"speculation": False, "draft_model": "small"},
        {"reader_grace_s": -1.0},
        {"reader_grace_s": float("nan")},
    ],
)
def test_a_setting_that_could_not_run_is_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=list(setting)[-1]):
        EngineConfig(model="m", **setting)
