"""Tests of app.tuning.adapter."""
