"""Tests of app.answering.answerer.followup."""
