"""Questions about real tables, each answered by one cell, asked of one library with the default models."""
