"""The ledger of model calls: one row for each call, its prices and its adjustments."""
