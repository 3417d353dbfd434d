"""Alerts: rules over series, their states, and the messages that follow. Composes what the domains offer."""
