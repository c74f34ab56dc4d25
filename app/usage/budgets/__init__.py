"""Budgets: what keys, users and tenants may spend in a window, and the alerts when they spend it."""
