"""What was spent: the ledger of model calls and the reports read from it."""
