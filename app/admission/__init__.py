"""Admission of requests: rate limits, quotas, and the queues where requests wait."""
