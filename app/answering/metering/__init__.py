"""The model calls of one answer: metered, stopped and counted in one place."""
