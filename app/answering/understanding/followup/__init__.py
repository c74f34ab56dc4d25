"""Rewrites a follow-up question so that it can be understood without the conversation before it."""
