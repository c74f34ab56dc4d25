"""Tests of app.usage.ledger.ledger."""
