"""Tests of the administrator's overview."""
