"""Tests of app.usage.budgets.budgets."""
