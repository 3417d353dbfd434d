"""Kinds of channels, one folder each: how a notification is written for it and what its answers mean."""
