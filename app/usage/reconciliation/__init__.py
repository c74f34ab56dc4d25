"""Compares the engine's own counters, the ledger, the rollups and the budgets with each other."""
