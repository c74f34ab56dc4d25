"""The question of one request, and the default limits of its answer."""

import time
from dataclasses import dataclass, replace
from typing import Literal

from app.answering.formats.answer_formats import ANSWER_SCHEMA, Format, answer_schema, json_answer
from app.errors import DeadlinePassed
from app.types import Principal
from generation.errors import ContextLengthExceeded
from generation.types import CitationMarkers, Constraint, JsonSchema, SamplingParams
from retrieval.types import Scope, SearchMode

MAX_CHOICES = 8
"""Most answers to one request."""

AnswerLength = Literal["short", "normal", "long"]
"""How much of what the documents say is told: the likeliest quote or a sentence, some, or all of it."""

GREEDY = SamplingParams(max_tokens=1)
"""How tokens are chosen where nothing is asked for: always the likeliest; `max_tokens` is set before generation."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant".

    `asks` says that it is the question back, which document is meant.
    """

    role: str
    content: str
    asks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDefaults:
    """Default limits: tokens of context and output, the least evidence score, the longest queue of waiting calls.

    `abstention_threshold` is the probability of a refusal from which on an answer is refused; None leaves that to the
    model. `highlight_tokens` of the context's tokens may repeat sentences behind the question.
    """

    max_context_tokens: int
    max_output_tokens: int
    min_evidence: float
    max_waiting: int
    abstention_threshold: float | None = None
    highlight_tokens: int = 120

    def room(self, question: "Question", *, window: int, fixed: int) -> tuple[int, int]:
        """The output tokens and context tokens that the question may use; `fixed` tokens of the window are taken.

        Raises:
            ContextLengthExceeded: There is no room for any context.
        """
        free = window - fixed
        wanted = question.max_output_tokens
        max_output = wanted if wanted is not None else min(self.max_output_tokens, max(1, free // 2))
        if free - max_output < 1:
            raise ContextLengthExceeded(prompt_tokens=fixed, max_tokens=max_output, context_window=window)
        asked = question.max_context_tokens
        return max_output, min(asked if asked is not None else self.max_context_tokens, free - max_output)

    def refused_from(self, question: "Question") -> float | None:
        """The probability in (0, 1] of there being no answer from which on a question is refused.

        None leaves that to the span reader and the model.
        """
        asked = question.abstention_threshold
        return self.abstention_threshold if asked is None else asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, its principal, the scope of its search, and the options for generating the answer.

    `rerank` None reranks where there is a reranker. `json_schema` (JSON text) asks for one JSON document
    that satisfies it, instead of prose with footnotes; `format` is "json" then. `deadline` is the
    `time.monotonic` second by which the answer must be finished. `asked` is the user's own wording, where
    `text` is a standalone rewriting of it. `strict` removes unverified sentences from the answer.
    `sampling.max_tokens` does not count: it is set when the answer is generated (`AnswerDefaults.room`).
    `choice` numbers the answers to one request, from 0. `preferred` are ids of documents, those that the last
    answer cited: their passages are preferred (`app.answering.retrieving.finder`). `alone` asks in a conversation
    without its earlier turns: nothing is rewritten, shown to the model or preferred because of them. `min_score` in
    [0, 1] is the least score of a hit (`Scores.ranking`). `length` is how much of what the documents say is told.
    """

    request_id: str
    endpoint: str
    principal: Principal
    text: str
    scope: Scope
    top_k: int = 8
    mode: SearchMode = SearchMode.HYBRID
    rerank: bool | None = None
    min_score: float | None = None
    max_context_tokens: int | None = None
    max_output_tokens: int | None = None
    sampling: SamplingParams = GREEDY
    choice: int = 0
    history: tuple[Message, ...] = ()
    conversation_id: str | None = None
    asked: str | None = None
    instructions: str = ""
    on_no_evidence: Literal["refuse", "answer"] = "refuse"
    dry_run: bool = False
    format: Format = "markdown"
    json_schema: str | None = None
    abstention_threshold: float | None = None
    deadline: float | None = None
    strict: bool = False
    preferred: tuple[str, ...] = ()
    alone: bool = False
    length: AnswerLength = "normal"

    @property
    def as_asked(self) -> str:
        """The question as the user wrote it, character for character."""
        return self.text if self.asked is None else self.asked

    @property
    def standalone(self) -> str | None:
        """The rewritten question; None where it stood alone as it was asked."""
        return self.text if self.asked is not None else None

    def standing_alone(self, text: str) -> "Question":
        """The question rewritten as `text`; the same object where that changes nothing."""
        return self if text == self.text else replace(self, text=text, asked=self.as_asked)

    @property
    def run_id(self) -> str:
        """The id of its generation: the request's id, from the second choice on with the choice's number."""
        return self.choice_id(self.request_id, self.choice)

    @staticmethod
    def choice_id(request_id: str, choice: int) -> str:
        """The `run_id` of a request's choice."""
        return request_id if choice == 0 else f"{request_id}.{choice}"

    def again(self, choice: int) -> "Question":
        """The same question for another choice; a seed is increased by one with each choice."""
        seed = self.sampling.seed
        if seed is not None:
            seed = (seed - self.choice + choice + 2**63) % 2**64 - 2**63
        return replace(self, choice=choice, sampling=replace(self.sampling, seed=seed))

    def in_form(self, text: str) -> str:
        """A text by Footnote in the form that is asked for; "" stays empty."""
        return json_answer(text)[0] if text and self.json_schema == ANSWER_SCHEMA else text

    def constraint(self, sources: int) -> Constraint | None:
        """The decoding constraint: a JSON schema where JSON is asked for, else markers of `sources` sources only."""
        if self.json_schema is not None:
            return JsonSchema(answer_schema(sources) if self.json_schema == ANSWER_SCHEMA else self.json_schema)
        return CitationMarkers(sources) if sources else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until its deadline, below 0 once that has passed; None where it has none."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    def require_time(self) -> float | None:
        """Seconds until its deadline, None where it has none.

        Raises:
            DeadlinePassed: It has passed.
        """
        left = self.seconds_left
        if left is not None and left <= 0:
            raise DeadlinePassed
        return left

    @property
    def late(self) -> bool:
        """Whether its deadline has passed."""
        left = self.seconds_left
        return left is not None and left <= 0
