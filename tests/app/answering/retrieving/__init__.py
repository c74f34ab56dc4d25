"""Tests of app.answering.retrieving."""
