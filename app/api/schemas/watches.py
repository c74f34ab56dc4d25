"""Bodies of watched questions and their events."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.schemas.bounds import LARGEST_INTEGER, MOST_QUESTION, Described, DocumentIds, Ids
from app.api.schemas.kept_citations import WordRunBody
from app.api.schemas.search import FILTER, Scoped
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.values import KEEP
from app.db.watches import Watch, WatchBudget, WatchEvent, WatchScope, WatchTerms
from ingestion.wording import changes

_EVERY = (
    "Seconds between two looks, at least the server's setting (300); null: it is looked at when its scope changes, and "
    "once a day."
)
_ON_CHANGE = (
    "Look when a document of the scope is ingested, replaced or deleted, or gets other metadata; at most as often as "
    "the shortest interval."
)
_BUDGET = "The most tokens that the watch begins to use in a period; null: no limit but the key's own budgets."
_CITATIONS = "Its footnotes, with the fields that they have in an answer."


class WatchBudgetBody(RequestBody):
    """The budget of a watch. A run is not begun once it is used up; one that is under way is finished."""

    tokens: int = Field(ge=1, le=LARGEST_INTEGER, description="Tokens read and written.", examples=[50_000])
    period: Literal["day", "month"] = Field(description="A day or month of the reporting zone.", examples=["month"])

    @classmethod
    def of(cls, budget: WatchBudget | None) -> "WatchBudgetBody | None":
        """The body for a budget."""
        return None if budget is None else cls(tokens=budget.tokens, period=budget.period)

    @property
    def terms(self) -> WatchBudget:
        """The budget that the body asks for."""
        return WatchBudget(self.tokens, self.period)


Every = Annotated[int, Field(ge=1, le=366 * 86_400)]


class NewWatch(Scoped):
    """A question to watch."""

    question: str = Field(
        min_length=1, max_length=MOST_QUESTION, description="The question.", examples=["What is the fee for parking?"]
    )
    every_s: Every | None = Field(default=None, description=_EVERY, examples=[86_400])
    on_change: bool | None = Field(
        default=None, description=f"{_ON_CHANGE} Default: true without an interval, false with one."
    )
    budget: WatchBudgetBody | None = Field(default=None, description=_BUDGET)

    @property
    def terms(self) -> WatchTerms:
        """The fields of a watch that the body sets."""
        return WatchTerms(
            question=self.question,
            scope=_scope(self.collection_ids, self.document_ids, self.filter),
            every_s=self.every_s,
            on_change=self.every_s is None if self.on_change is None else self.on_change,
            budget=None if self.budget is None else self.budget.terms,
        )


class WatchPatch(RequestBody):
    """Changes to a watch; omitted fields stay, null removes a limit. The scope is changed as a whole."""

    question: str | None = Field(
        default=None, min_length=1, max_length=MOST_QUESTION, description="Another question, of which nothing is known."
    )
    collection_ids: Ids | None = Field(default=None, description="With any field of the scope, all of it is replaced.")
    document_ids: DocumentIds | None = Field(default=None, description="Only these documents.")
    filter: Described | None = Field(default=None, description=FILTER)
    every_s: Every | None = Field(default=None, description=_EVERY)
    on_change: bool | None = Field(default=None, description=_ON_CHANGE)
    budget: WatchBudgetBody | None = Field(default=None, description=_BUDGET)
    paused: bool | None = Field(default=None, description="Whether it is looked at no more.", examples=[True])

    @property
    def changes_scope(self) -> bool:
        """Whether the body replaces the scope."""
        return bool({"collection_ids", "document_ids", "filter"} & self.model_fields_set)

    @property
    def terms(self) -> WatchTerms:
        """The fields of a watch that the body sets."""
        given = self.model_fields_set
        return WatchTerms(
            question=KEEP if self.question is None else self.question,
            scope=_scope(self.collection_ids, self.document_ids, self.filter) if self.changes_scope else KEEP,
            every_s=self.every_s if "every_s" in given else KEEP,
            on_change=KEEP if self.on_change is None else self.on_change,
            budget=KEEP if "budget" not in given else None if self.budget is None else self.budget.terms,
            paused=KEEP if self.paused is None else self.paused,
        )


class WatchedAnswerBody(ResponseBody):
    """An answer to a watched question."""

    id: str = Field(description="The request of the answer, by which the ledger has its calls.", examples=["req_01k9"])
    answered: bool = Field(description="Whether the question is answered, with footnotes.")
    reason: str | None = Field(description="Why it is not answered, as in an answer; null where it is.")
    answer: str = Field(description="The text.", examples=["30 euros a month [1]."])
    model: str = Field(description="The model that wrote the text, or chose the quotes.")
    citations: list[dict[str, Any]] = Field(description=_CITATIONS)
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-29T10:00:00.000Z"])

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "WatchedAnswerBody":
        """The body for an answer that a watch keeps."""
        return cls.model_validate({**kept, "created_at": rfc3339(kept["created_at"])})


class WatchBody(ResponseBody):
    """A watched question."""

    id: str = Field(description="The watch's id.", examples=["watch_01k9"])
    object: Literal["watch"] = Field(default="watch", description="Always `watch`.")
    question: str = Field(description="The question.")
    collection_ids: list[str] | None = Field(description="Only these collections; null: those of the key.")
    document_ids: list[str] | None = Field(description="Only these documents; null: no limit.")
    filter: dict[str, Any] | None = Field(description="Only documents whose metadata match; null: no limit.")
    every_s: int | None = Field(description=_EVERY)
    on_change: bool = Field(description=_ON_CHANGE)
    budget: WatchBudgetBody | None = Field(description=_BUDGET)
    user_id: str = Field(description="The user whom it belongs to.", examples=["user_1"])
    key_id: str = Field(description="The key that made it and pays; `openid` for a user without a key.")
    paused: bool = Field(description="Whether it is looked at no more.")
    state: Literal["waiting", "current", "paused", "no_access", "over_budget", "failing"] = Field(
        description="`waiting` for its first answer; `current`: its passages were looked for, its answer is of them; "
        "`paused`; `no_access`: its key, user or collection may not ask any more; `over_budget`: a budget has no room; "
        "`failing`: it is tried again.",
        examples=["current"],
    )
    state_detail: str | None = Field(description="Why it is not looked at, in one sentence; null where it is.")
    used_tokens: int = Field(description="Tokens used in the present period of its budget, or in all without one.")
    looked_at: str | None = Field(description="When its passages were looked for last, RFC 3339 UTC.")
    due_at: str | None = Field(description="When they are looked for next, RFC 3339 UTC; null while it is paused.")
    changed_at: str | None = Field(description="When its evidence changed last, RFC 3339 UTC; null: it has not.")
    answer: WatchedAnswerBody | None = Field(description="The last answer; null before the first.")
    created_at: str = Field(description="RFC 3339 UTC.")
    updated_at: str = Field(description="When it was changed last, RFC 3339 UTC.")

    @classmethod
    def of(cls, watch: Watch) -> "WatchBody":
        """The body for a watch."""
        return cls.model_validate(
            {
                **watch.scope.as_json(),
                **{name: getattr(watch, name) for name in _SAME},
                "state": "paused" if watch.paused else watch.state,
                "budget": WatchBudgetBody.of(watch.budget),
                "looked_at": None if watch.looked_at is None else rfc3339(watch.looked_at),
                "due_at": None if watch.due_at is None else rfc3339(watch.due_at),
                "changed_at": None if watch.changed_at is None else rfc3339(watch.changed_at),
                "answer": None if watch.answer is None else WatchedAnswerBody.of(watch.answer),
                "created_at": rfc3339(watch.created_at),
                "updated_at": rfc3339(watch.updated_at),
            }
        )


_SAME = (
    *("id", "question", "every_s", "on_change", "user_id", "key_id", "paused", "state_detail", "used_tokens"),
)  # fields that a watch and its body have alike


class WatchDifferenceBody(ResponseBody):
    """One difference between the evidence of two answers."""

    kinds: list[Literal["answered", "passage", "number", "date", "name", "negation"]] = Field(
        description="`answered`: only one of them answers. `passage`: only one of them cites it. Else what differs "
        "between two wordings of a passage.",
        examples=[["number"]],
    )
    before: dict[str, Any] | None = Field(description="The citation of the earlier answer; null where it has none.")
    after: dict[str, Any] | None = Field(description="The citation of the later answer; null where it has none.")
    changes: list[WordRunBody] = Field(description="The runs of both wordings of a passage; empty for one alone.")

    @classmethod
    def of(cls, difference: Mapping[str, Any]) -> "WatchDifferenceBody":
        """The body for a difference of an event."""
        before, after = difference["before"], difference["after"]
        runs = () if before is None or after is None else changes(before["cited_text"], after["cited_text"])
        return cls.model_validate({**difference, "changes": [{"kind": run.kind, "text": run.text} for run in runs]})


class WatchEventBody(ResponseBody):
    """The evidence of a watched question changed."""

    id: str = Field(description="The event's id.", examples=["event_01k9"])
    object: Literal["watch_event"] = Field(default="watch_event", description="Always `watch_event`.")
    watch_id: str = Field(description="The watch.", examples=["watch_01k9"])
    question: str = Field(description="The question.")
    before: WatchedAnswerBody = Field(description="The answer until then.")
    after: WatchedAnswerBody = Field(description="The answer from then on.")
    differences: list[WatchDifferenceBody] = Field(description="What differs, and the passages that it is in.")
    created_at: str = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, event: WatchEvent) -> "WatchEventBody":
        """The body for an event."""
        return cls(
            id=event.id,
            watch_id=event.watch_id,
            question=event.question,
            before=WatchedAnswerBody.of(event.before),
            after=WatchedAnswerBody.of(event.after),
            differences=list(map(WatchDifferenceBody.of, event.differences)),
            created_at=rfc3339(event.created_at),
        )


class WatchDeletedBody(ResponseBody):
    """A watch was deleted."""

    id: str = Field(description="Its id.")
    object: Literal["watch"] = Field(default="watch", description="Always `watch`.")
    deleted: bool = Field(default=True, description="Always true.")


def _scope(
    collection_ids: list[str] | None,
    document_ids: list[str] | None,
    filter: dict[str, object] | None,  # noqa: A002 - the API's own word
) -> WatchScope:
    return WatchScope(
        None if collection_ids is None else tuple(collection_ids),
        None if document_ids is None else tuple(document_ids),
        filter,
    )
