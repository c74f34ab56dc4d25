"""The ingestion worker: parses, embeds and indexes uploaded documents in background threads."""
