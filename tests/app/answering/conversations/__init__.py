"""Tests of app.answering.conversations."""
