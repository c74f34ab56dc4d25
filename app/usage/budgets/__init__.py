"""Budgets: limits on the tokens or the cost of a tenant, user, key or collection in a period, and their alerts."""
