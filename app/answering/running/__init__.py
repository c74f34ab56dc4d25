"""Answers that are being given: what runs, in which thread, and how it is stopped."""
