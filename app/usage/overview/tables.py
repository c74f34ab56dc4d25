"""The overview and its lists as tables: the columns of each export, and its rows, made from the bodies of the API."""

from collections.abc import Iterator

from app.usage.reports.tables import Page, ReportTable, Row, listed_rows

_RESULT = (
    "num_questions",
    "num_answered",
    "num_unsure",
    "num_refused",
    "num_failed",
    "num_cancelled",
    "num_unknown",
    "num_confirmable",
    "num_confirmed",
    "confirmed_share",
    "num_thumbs_up",
    "num_thumbs_down",
    "median_seconds",
    "p95_seconds",
    "num_active_users",
    "num_model_requests",
    "input_tokens",
    "output_tokens",
    "num_unpriced",
    "cost",
    "asking_cost",
    "cost_per_question",
    "currency",
)


def _overview_rows(page: Page) -> Iterator[Row]:
    """The buckets, then the whole range, the period before and the month's cost, told apart by `row`."""
    for bucket in page["data"]:
        yield {"row": "bucket", **_times(bucket), "start_local": bucket["start_local"], **bucket["result"]}
    yield {"row": "total", **_times(page), **page["total"]}
    if page["before"]["result"] is not None:
        yield {"row": "before", **_times(page["before"]), **page["before"]["result"]}
    month = page["month"]
    yield {"row": "month", **_times(month), "cost": month["cost"]}
    yield {"row": "month expected", **_times(month), "cost": month["expected_cost"]}


def _unanswered_rows(page: Page) -> Iterator[Row]:
    """The topics; texts that belong together share a cell, one a line."""
    for topic in page["data"]:
        nearest = topic["nearest"] or ()
        yield {
            **{name: topic[name] for name in ("num_questions", "num_unsure", "num_refused", "last_asked_at")},
            "words": " ".join(topic["words"]),
            "examples": "\n".join(example["question"] for example in topic["examples"]),
            "nearest_documents": "\n".join(one["name"] for one in nearest),
            "nearest_headings": "\n".join(one["heading"] or "" for one in nearest),
        }


def _expensive_rows(page: Page) -> Iterator[Row]:
    """The questions; the documents they were answered from share a cell, one a line."""
    for one in page["data"]:
        documents = "\n".join(
            f"{each['name']}: {each['tokens']} tokens in {each['num_chunks']} passages" for each in one["documents"]
        )
        yield {**{name: value for name, value in one.items() if name != "parts"}, "documents": documents}


OVERVIEW = ReportTable("overview", ("row", "start_time", "end_time", "start_local", *_RESULT), _overview_rows)
UNANSWERED = ReportTable(
    "unanswered",
    (
        "words",
        "num_questions",
        "num_unsure",
        "num_refused",
        "last_asked_at",
        "examples",
        "nearest_documents",
        "nearest_headings",
    ),
    _unanswered_rows,
)
UNUSED = ReportTable(
    "unused-documents",
    (
        "document_id",
        "name",
        "collection_id",
        "created_at",
        "age_days",
        "bytes",
        "num_pages",
        "num_chunks",
        "embedding_tokens",
        "last_cited_at",
    ),
    listed_rows,
)
EXPENSIVE = ReportTable(
    "expensive",
    (
        "request_id",
        "conversation_id",
        "question",
        "user_id",
        "asked_at",
        "result",
        "cost",
        "currency",
        "input_tokens",
        "context_tokens",
        "history_tokens",
        "output_tokens",
        "num_model_requests",
        "documents",
        "why",
        "how_to_lower",
    ),
    _expensive_rows,
)
PEOPLE = ReportTable(
    "people",
    (
        "user_id",
        "name",
        "num_questions",
        "num_model_requests",
        "input_tokens",
        "output_tokens",
        "cost",
        "currency",
        "share",
        "answers_cost",
        "documents_cost",
        "answers_tokens",
        "documents_tokens",
        "collection_id",
        "collection_name",
    ),
    listed_rows,
)

NUMBERS = frozenset({"cost", "asking_cost", "cost_per_question", "answers_cost", "documents_cost"})
"""Columns of amounts: decimal strings, with a minus if negative."""


def _times(of: Page) -> dict[str, object]:
    return {name: of[name] for name in ("start_time", "end_time")}
