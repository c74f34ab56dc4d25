"""The only code that connects to addresses that other people name: web pages and webhooks."""
