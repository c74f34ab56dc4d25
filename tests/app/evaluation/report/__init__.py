"""Tests of app.evaluation.report."""
