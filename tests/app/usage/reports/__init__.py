"""Tests of app.usage.reports.reports."""
