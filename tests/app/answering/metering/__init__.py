"""Tests of app.answering.metering."""
