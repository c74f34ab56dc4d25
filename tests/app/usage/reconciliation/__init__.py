"""Tests of app.usage.reconciliation.reconciliation."""
