"""Tests of app.usage.rollups."""
