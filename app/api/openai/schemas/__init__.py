"""Request and response bodies of OpenAI's protocol."""
