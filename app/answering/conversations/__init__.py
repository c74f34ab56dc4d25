"""Conversations: their turns, and how each answer was produced."""
