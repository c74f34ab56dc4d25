"""Tests of app.answering.citing."""
