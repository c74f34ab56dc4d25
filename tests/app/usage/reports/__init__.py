"""Tests of app.usage.reports."""
