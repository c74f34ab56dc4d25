"""The Model Context Protocol at /mcp: tools and resources of the caller's documents, in the process that answers."""
