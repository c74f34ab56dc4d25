"""Understands a question: its conversation, what it stands for alone, and replies that need no search."""
