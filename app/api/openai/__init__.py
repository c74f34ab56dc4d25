"""The routes of the OpenAI protocol."""
