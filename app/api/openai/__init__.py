"""The routes of OpenAI's protocol."""
