"""Tests of app.evaluation.report.page."""
