"""An MCP server that gives assistants search and cited answers through the HTTP API."""
