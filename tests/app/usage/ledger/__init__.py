"""Tests of app.usage.ledger."""
