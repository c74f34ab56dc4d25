"""Footnote for assistants: an MCP server over the HTTP contract."""
