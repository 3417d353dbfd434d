"""Fixtures."""
