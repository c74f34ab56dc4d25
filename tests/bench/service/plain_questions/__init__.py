"""Plain questions about real documents, asked of one library with the default models, and how right the answers are."""
