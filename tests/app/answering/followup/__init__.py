"""Tests of app.answering.followup."""
