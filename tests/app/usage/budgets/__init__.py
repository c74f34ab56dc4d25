"""Tests of app.usage.budgets."""
