"""Tests of app.backup."""
