"""Logs, traces and metrics of a running server. Imports no SQL."""
