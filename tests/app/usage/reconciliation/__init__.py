"""Tests of app.usage.reconciliation."""
