"""Figures over HTTP: the same pictures for the browser, for notebooks and for files."""
