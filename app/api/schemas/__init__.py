"""Request and response bodies; the OpenAPI document is made from these."""
