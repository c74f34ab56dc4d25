"""Tests of app.answering.generating."""
