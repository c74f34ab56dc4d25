"""The protocol's own client at /mcp of a running server, with a key."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent


@asynccontextmanager
async def assistant(url: str, key: str, **options: Any) -> AsyncIterator[Client]:
    """A client that has initialised; `mode` chooses the protocol's version."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), **options) as client:
            yield client


def text_of(result: Any) -> str:
    """The text of a tool's result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
