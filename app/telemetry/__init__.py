"""Logs, traces and metrics of a running server. Knows no SQL."""
