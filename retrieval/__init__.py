"""Find the passages that answer a question, and fit them into a token budget."""
