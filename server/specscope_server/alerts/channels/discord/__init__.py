"""Discord, by webhook."""
