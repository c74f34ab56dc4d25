"""Tests of app.tuning.evidence_reader."""
