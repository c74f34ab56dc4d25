"""Tests of app.answering.running.registry."""
