"""Tests of app.api.gate."""
