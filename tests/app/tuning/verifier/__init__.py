"""Tests of app.tuning.verifier."""
