"""Tests of app.answering.states."""
