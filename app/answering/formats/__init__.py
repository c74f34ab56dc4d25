"""The forms of an answer: Markdown, plain text, JSON."""
