"""Bodies of the administrator's overview and its lists. Times are Unix seconds."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import Money
from app.db.answer_citations import AnswerResult


class OverviewResult(ResponseBody):
    """The figures of a bucket, or of a whole period."""

    object: Literal["overview.result"] = Field(default="overview.result", description="Always `overview.result`.")
    num_questions: int = Field(description="Questions; the sum of the next six.")
    num_answered: int = Field(description="Questions that were answered.")
    num_unsure: int = Field(description="Questions that were answered with the nearest passages only.")
    num_refused: int = Field(description="Questions that the documents do not answer.")
    num_failed: int = Field(description="Questions that ended with an error or at their deadline.")
    num_cancelled: int = Field(description="Questions that the client cancelled or left.")
    num_unknown: int = Field(
        description="Questions without a recorded outcome: those of earlier versions, and those cut off by a crash. "
        "They count at the time they were accepted."
    )
    num_confirmable: int = Field(description="Answers that could cite a document; the reply to a greeting cannot.")
    num_confirmed: int = Field(description="Answers with at least one verified citation.")
    confirmed_share: float | None = Field(description="`num_confirmed` / `num_confirmable`; null without any.")
    num_thumbs_up: int = Field(description="Positive feedback, at the time it was first given.")
    num_thumbs_down: int = Field(description="Negative feedback, at the time it was first given.")
    median_seconds: float | None = Field(
        description="Median seconds from the start of the search to the end of an answer or refusal; null without any."
    )
    p95_seconds: float | None = Field(description="95th percentile of the same seconds, by nearest rank.")
    num_active_users: int = Field(description="Users who asked at least once.")
    num_model_requests: int = Field(description="Model calls of every kind, ingestion included.")
    input_tokens: int = Field(description="Input tokens of these calls.")
    output_tokens: int = Field(description="Output tokens of these calls.")
    num_unpriced: int = Field(description="Number of calls whose model had no price.")
    cost: Money = Field(description="Cost of the calls and adjustments; null when no call had a price.")
    asking_cost: Money = Field(description="The part of it that questions and searches had, without ingestion.")
    cost_per_question: Money = Field(description="`asking_cost` / `num_questions`, rounded down; null without any.")


class OverviewBucket(ResponseBody):
    """The figures of one bucket."""

    object: Literal["bucket"] = Field(default="bucket", description="Always `bucket`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    start_local: str = Field(description="The start in the time zone, RFC 3339.")
    result: OverviewResult = Field(description="Its figures.")


class OverviewBefore(ResponseBody):
    """The period of the same length before."""

    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    result: OverviewResult | None = Field(description="Its figures; null before the year 1970.")


class OverviewMonth(ResponseBody):
    """The running month."""

    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    cost: Money = Field(description="Cost so far; null when no call had a price.")
    expected_cost: Money = Field(
        description="Cost at the end of the month, if the rest of it costs as much a day as the last seven days."
    )


class OverviewBody(ResponseBody):
    """Questions, outcomes, feedback, seconds, people, tokens and cost over time."""

    object: Literal["overview"] = Field(default="overview", description="Always `overview`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    bucket_width: str = Field(description="The width of a bucket.", examples=["1d"])
    data: list[OverviewBucket] = Field(description="The buckets, oldest first.")
    total: OverviewResult = Field(description="The whole range. People are counted once, so they are no sum.")
    before: OverviewBefore = Field(description="The period of the same length before, to compare with.")
    month: OverviewMonth = Field(description="The cost of the running month.")
    as_of: int = Field(description="When the report was generated, Unix seconds.")
    final: bool = Field(description="Whether the range is final; feedback and adjustments may still be added.")
    tz: str = Field(description="The report's time zone.", examples=["UTC"])


class UnansweredExample(ResponseBody):
    """A question of a topic."""

    question: str = Field(description="The question, at most 500 characters.")
    result: AnswerResult = Field(description="unsure or refused.")
    conversation_id: str = Field(description="Its conversation.")
    request_id: str = Field(description="Its request.")
    asked_at: int = Field(description="When it was answered.")


class NearestPassage(ResponseBody):
    """The nearest passage of one of the nearest documents."""

    document_id: str = Field(description="The document.")
    name: str = Field(description="Its file name.")
    heading: str = Field(description="The headings above the passage, as one line; may be empty.")
    page: int | None = Field(description="The page that the passage begins on, if known.")


class UnansweredTopic(ResponseBody):
    """Questions that share words and were not answered."""

    object: Literal["overview.unanswered_topic"] = Field(
        default="overview.unanswered_topic", description="Always `overview.unanswered_topic`."
    )
    words: list[str] = Field(description="The words that the questions share, in their basic form.")
    num_questions: int = Field(description="Number of questions.")
    num_unsure: int = Field(description="Those answered with the nearest passages only.")
    num_refused: int = Field(description="Those that were refused.")
    last_asked_at: int = Field(description="When the newest was answered.")
    examples: list[UnansweredExample] = Field(description="The newest different questions, at most three.")
    nearest: list[NearestPassage] | None = Field(
        description="The documents that come nearest to the newest question, found by words; they need not answer it. "
        "Null where the time for searching was over."
    )


class UnansweredBody(ResponseBody):
    """Topics, the largest first."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[UnansweredTopic] = Field(description="The topics.")
    num_questions: int = Field(description="All questions of the range that were not answered.")
    num_without_text: int = Field(
        description="Those in no topic, as they were asked outside of conversations and their text is not kept."
    )
    num_not_read: int = Field(description="Those in no topic, as only the newest 2,000 are read.")
    num_topics: int = Field(description="Number of topics, of which `limit` are listed.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    as_of: int = Field(description="When the list was generated, Unix seconds.")


class UnusedDocument(ResponseBody):
    """A searchable document that answers do not cite."""

    object: Literal["overview.unused_document"] = Field(
        default="overview.unused_document", description="Always `overview.unused_document`."
    )
    document_id: str = Field(description="The document.")
    name: str = Field(description="Its file name.")
    collection_id: str = Field(description="Its collection.")
    created_at: int = Field(description="When it was added.")
    age_days: int = Field(description="Whole days since then.")
    bytes: int = Field(description="Size of the file.")
    num_pages: int = Field(description="Number of pages.")
    num_chunks: int = Field(description="Number of passages in the index.")
    embedding_tokens: int = Field(description="Tokens that were embedded for its current version.")
    last_cited_at: int | None = Field(description="When an answer last cited it; null: never.")


class UnusedBody(ResponseBody):
    """A page of documents, the oldest first."""

    object: Literal["page"] = Field(default="page", description="Always `page`.")
    data: list[UnusedDocument] = Field(description="The documents.")
    has_more: bool = Field(description="Whether another page follows.")
    next_page: str | None = Field(description="Pass as `page` to get the next page; null on the last.")
    as_of: int = Field(description="When the list was generated, Unix seconds.")


class ExpensivePart(ResponseBody):
    """The calls of one operation and model."""

    operation: str = Field(description="The operation.", examples=["chat"])
    model: str = Field(description="The model.")
    num_model_requests: int = Field(description="Number of calls.")
    input_tokens: int = Field(description="Input tokens.")
    output_tokens: int = Field(description="Output tokens.")
    cost: Money = Field(description="Their cost; null when no call had a price.")


class PresentedDocument(ResponseBody):
    """A document in the longest prompt of a question."""

    document_id: str = Field(description="The document.")
    name: str = Field(description="Its file name, `(deleted)` where it is deleted.")
    num_chunks: int = Field(description="Passages of it in the prompt.")
    tokens: int = Field(description="Their tokens.")


class ExpensiveQuestion(ResponseBody):
    """A question with its cost, the reason for it, and what lowers it."""

    object: Literal["overview.expensive_question"] = Field(
        default="overview.expensive_question", description="Always `overview.expensive_question`."
    )
    request_id: str = Field(description="The request.")
    conversation_id: str | None = Field(description="Its conversation; null where it was asked outside of one.")
    question: str | None = Field(description="The question; null where its text is not kept.")
    user_id: str = Field(description="The user who asked.")
    asked_at: int = Field(description="When it was asked.")
    result: AnswerResult | None = Field(description="How it ended; null where that was not recorded.")
    cost: Money = Field(description="Its cost without adjustments; null when no call had a price.")
    input_tokens: int = Field(description="Input tokens of all its calls.")
    context_tokens: int = Field(description="Those of sources in prompts.")
    history_tokens: int = Field(description="Those of earlier turns in prompts.")
    output_tokens: int = Field(description="Output tokens of all its calls.")
    num_model_requests: int = Field(description="Number of calls.")
    parts: list[ExpensivePart] = Field(description="Its calls by operation and model.")
    documents: list[PresentedDocument] = Field(description="The sources of its longest prompt by document.")
    why: str = Field(
        description="The reason, in words and figures.",
        examples=["5,859 tokens of sources were read for an answer of 10 tokens."],
    )
    how_to_lower: str = Field(description="Parameters and settings that make such a question cheaper.")


class ExpensiveBody(ResponseBody):
    """Questions, the most expensive first."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[ExpensiveQuestion] = Field(description="The questions.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    as_of: int = Field(description="When the list was generated, Unix seconds.")


class OverviewPerson(ResponseBody):
    """A person's use."""

    object: Literal["overview.person"] = Field(default="overview.person", description="Always `overview.person`.")
    user_id: str = Field(description="The user, also when deleted.")
    name: str | None = Field(description="The user's name, if any.")
    num_questions: int = Field(description="Questions asked.")
    num_model_requests: int = Field(description="Model calls.")
    input_tokens: int = Field(description="Input tokens.")
    output_tokens: int = Field(description="Output tokens.")
    cost: Money = Field(description="Cost; null when no call had a price.")
    share: float | None = Field(description="Share of the tenant's cost, or of its tokens where nothing has a price.")
    answers_cost: str | None = Field(description="The part of the cost that answers and searches had.")
    documents_cost: str | None = Field(description="The part of the cost that indexing documents had.")
    answers_tokens: int = Field(description="Tokens of answers and searches.")
    documents_tokens: int = Field(description="Tokens of indexing documents.")
    collection_id: str | None = Field(
        description="The collection that most of the cost was for; null: requests to several or all."
    )
    collection_name: str | None = Field(description="Its name; null where it is deleted.")


class PeopleBody(ResponseBody):
    """People, the highest cost first."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[OverviewPerson] = Field(description="The people.")
    num_people: int = Field(description="Number of people who used anything, of whom `limit` are listed.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    as_of: int = Field(description="When the list was generated, Unix seconds.")
