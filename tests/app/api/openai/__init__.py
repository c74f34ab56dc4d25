"""Tests of app.api.openai."""
