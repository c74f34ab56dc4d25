"""Largest lengths of texts, lists and objects, and largest numbers, in requests.

`tests/contracts/test_request_bounds.py` fails for a field without a maximum. The JSON depth and number of conditions of
filters and JSON schemas are limited by their own readers.
"""

from typing import Annotated

from pydantic import Field

MOST_ID = 256
"""Characters of an id or name that a request refers to."""

MOST_QUESTION = 32_768
"""Characters of a question or query: tokenizing more takes longer than finding the answer."""

MOST_TEXT = 131_072
"""Characters of another text that is tokenized, and of all messages of a chat together."""

LARGEST_INTEGER = 2**31 - 1
"""The largest whole number that a request may carry where nothing smaller is the limit: both databases hold it."""

MOST_DOCUMENT = 4 << 20
"""Characters of a document in JSON; a larger one is sent as a file."""

MOST_SENT = 32 << 20
"""Characters of a document inside a message; the setting of the largest such body is never above it."""

MOST_METADATA = 64_000
"""Characters of metadata as JSON."""

MOST_FIELDS = 1000
"""Fields of an object with the caller's own names, and items of a list in it."""

MOST_QUERY = 65_536
"""Characters of a query parameter that may be a list with commas: the server's limit of a URL."""

Id = Annotated[str, Field(max_length=MOST_ID)]
"""An id in a path, query or body."""

Ids = Annotated[list[Id], Field(max_length=1000, fail_fast=True)]
"""Ids in a body. The first wrong one is reported, not each."""

DocumentIds = Annotated[list[Id], Field(max_length=10_000, fail_fast=True)]
"""Ids of documents in a body."""

Listed = Annotated[list[Annotated[str, Field(max_length=MOST_QUERY)]], Field(max_length=1000)]
"""A query parameter that is a list: repeated, or with commas."""

Described = Annotated[dict[str, object], Field(max_length=MOST_FIELDS)]
"""An object of a form that its own reader checks: a filter, or a JSON Schema."""
