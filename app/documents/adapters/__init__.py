"""Adapters: what implements the ports of documents. Only the composition root (`app.server`) names these modules."""
