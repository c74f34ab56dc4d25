"""Tests of app.outbound."""
