"""Tests of app.telemetry.logs."""
