"""One module for each way to find servers: ``Config`` (its ``[[discover]]`` table) and ``build``."""
