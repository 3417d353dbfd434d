"""Commands that need nothing of the server."""
