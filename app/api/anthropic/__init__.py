"""The routes of Anthropic's protocol."""
