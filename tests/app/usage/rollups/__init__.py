"""Tests of app.usage.rollups.rollups."""
