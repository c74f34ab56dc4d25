"""The administrator's overview: questions and their outcomes over time, and lists of what deserves a look."""
