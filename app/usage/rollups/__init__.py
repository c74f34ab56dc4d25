"""Rollups: usage summed by quarter hour, day and month, so that reports need not read the whole ledger."""
