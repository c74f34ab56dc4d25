"""Tests of the languages and of what is said in them."""
