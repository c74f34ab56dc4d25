"""Token usage and its cost: the ledger of model calls, budgets, rollups, reports and reconciliation."""
