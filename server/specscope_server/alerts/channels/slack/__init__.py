"""Slack, by incoming webhook."""
