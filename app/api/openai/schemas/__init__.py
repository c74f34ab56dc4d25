"""Request and response bodies of the OpenAI protocol."""
