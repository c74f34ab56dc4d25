"""The record of a run in `run.json`, complete enough to compare two runs question by question."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.evaluation.intervals import Difference, Estimate
from app.evaluation.types import RunMalformed


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ExampleDocument(_Record):
    """A document in an example: its id in the set, a name, and how its text begins."""

    id: str
    title: str
    text: str
    gold: bool


class Example(_Record):
    """A failed question with its expected and actual result; `answer` when one was generated.

    `score` is nDCG@10 of a retrieval, token F1 of an answer.
    """

    kind: Literal["retrieval", "answer"]
    id: str
    question: str
    score: float
    gold: list[ExampleDocument]
    found: list[ExampleDocument]
    answers: list[str]
    answer: str | None = None


class SetRun(_Record):
    """One question set: `values` by key and question, `summary` by measure, `groups` by metadata value.

    `against_floor` is how much better the model is than the extractive reader, by the model's measure.
    `abstention` is how strongly answering was advised against, in [0, 1], by group and question.
    """

    name: str
    fingerprint: str
    documents: int
    questions: int
    values: dict[str, dict[str, float]]
    summary: dict[str, Estimate]
    groups: dict[str, dict[str, Estimate]]
    examples: list[Example]
    notes: list[str]
    against_floor: dict[str, Difference] = Field(default_factory=dict)
    abstention: dict[str, dict[str, float]] = Field(default_factory=dict)


class RunComparison(_Record):
    """Changes since an earlier run: by set and measure, and of the mean over the common sets."""

    before: str
    sets: dict[str, dict[str, Difference]]
    overall: dict[str, Difference]
    notes: list[str]


class Run(_Record):
    """One run. `settings` are those that matter to the figures, `created_at` is ISO 8601 in UTC."""

    format: Literal[1] = 1
    created_at: str
    versions: dict[str, str]
    settings: dict[str, str]
    options: dict[str, str]
    by: str | None
    sets: list[SetRun]
    overall: dict[str, Estimate]
    comparison: RunComparison | None = None


def read_run(path: Path) -> Run:
    """Reads an earlier run.

    Raises:
        RunMalformed: The file is missing, or is not a run in this format.
    """
    try:
        return Run.model_validate_json(path.read_bytes())
    except OSError:
        raise RunMalformed(f"{path.name}: the run to compare with cannot be opened.") from None
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the file"
        raise RunMalformed(f"{path.name} is no run of `footnote eval`: {where}: {problem['msg']}.") from None
