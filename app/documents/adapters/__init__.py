"""The adapters of the ports of documents. Only the composition root (`app.server`) names these modules."""
