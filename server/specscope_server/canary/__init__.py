"""Runs of the canary and their comparison prompt by prompt."""
