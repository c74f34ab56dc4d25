"""The results of measuring one question set: a value per question and measure, examples, remarks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from app.evaluation.intervals import Statistic
from app.evaluation.record import Example

Values: TypeAlias = dict[str, dict[str, float]]
"""Values by key (`measures.measures_of`) and question."""

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the current activity, and the finished and total numbers."""


@dataclass(slots=True)
class Measured:
    """Values by key and question, abstention scores by group and question, examples of failures, remarks."""

    values: Values = field(default_factory=dict)
    abstention: Values = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, key: str, question: str, value: float) -> None:
        """Records one value."""
        self.values.setdefault(key, {})[question] = value

    def put_all(self, prefix: str, question: str, scores: Mapping[str, float]) -> None:
        """Records a question's scores, each under `prefix` and its name."""
        for name, score in scores.items():
            self.put(f"{prefix}/{name}", question, score)


_NAMES = {
    "ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "recall@20": "recall@20",
    "mrr": "MRR", "span": "gold span in a chunk of the context",
    "spans": "gold spans kept", "answers": "gold answers kept", "words": "words of the gold answer kept",
    "documents": "gold documents kept", "tokens": "context tokens",
    "exact_match": "exact match", "f1": "token F1", "contains": "gold answer contained",
    "citation_precision": "citations of a gold document", "citation_recall": "answers that cite a gold document",
    "citation_answer": "citations that hold a gold answer", "citation_span": "citations that meet a gold span",
    "right_precision": "citations of a gold document or answer", "right_recall": "answers that cite either",
    "verified": "answers with a verified citation", "rouge_l": "ROUGE-L",
    "dangling": "dangling citations an answer", "slices": "cited texts that are the slice",
    "refusal": "unanswerables refused", "model_refusal": "refused by the model, of those it was asked",
    "gate": "refused before generation", "false_refusal": "answerables refused",
    "first_contains": "gold answer in the lead or first quote", "unsure": "answerables answered as unsure",
    "verified_wrong": "wrong answers of those verified",
    "prompt_tokens": "tokens read", "completion_tokens": "tokens written",
    "latency": "latency",
}  # fmt: skip
# Names used where the variant already names what was asked.
_NAMES_IN_GROUPS = {"refusal": "refused", "false_refusal": "wrongly refused"}
_GROUPED = frozenset({"presented", "extractive"})
_LESS_IS_BETTER = frozenset(
    {"false_refusal", "unsure", "verified_wrong", "dangling", "prompt_tokens", "completion_tokens", "latency", "tokens"}
)
_TOKENS = frozenset({"tokens", "prompt_tokens", "completion_tokens"})


@dataclass(frozen=True, slots=True)
class Measure:
    """One reported figure. `key` names it in a run, `values` the per-question values it is a statistic of.

    `variant` is the search mode, the share of the retrieved tokens in percent, or the group of questions
    that were asked of presented documents. `floor` names the extractive reader's values of the same.
    """

    key: str
    values: str
    group: str
    variant: str
    label: str
    unit: Literal["share", "ms", "tokens"]
    higher_is_better: bool
    statistic: Statistic
    floor: str | None = None

    def show(self, value: float, *, signed: bool = False) -> str:
        """Formats a value for display."""
        sign = "+" if signed else ""
        if self.unit == "share":
            return f"{value:{sign}.3f}"
        return f"{value:{sign},.0f}" + (" ms" if self.unit == "ms" else "")


def measures_of(keys: Iterable[str]) -> list[Measure]:
    """The figures computed from per-question values, in the order of the values.

    A values' key is `group/variant/name` or `group/name`; a latency has two figures, p50 and p95.
    """
    return [measure for key in keys for measure in _measures(key)]


def _measures(key: str) -> list[Measure]:
    group, *middle, name = key.split("/")
    variant = middle[0] if middle else ""
    label = _NAMES[name]
    if variant and group in _GROUPED:
        label = _NAMES_IN_GROUPS.get(name, label)
    if name == "latency":
        return [
            Measure(f"{key}/{statistic}", key, group, variant, f"{label} {statistic}", "ms", False, statistic)
            for statistic in ("p50", "p95")
        ]
    unit: Literal["share", "tokens"] = "tokens" if name in _TOKENS else "share"
    floor = "/".join(("extractive", *middle, name)) if group in {"answers", "presented"} else None
    return [Measure(key, key, group, variant, label, unit, name not in _LESS_IS_BETTER, "mean", floor)]
