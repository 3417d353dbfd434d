"""Receivers that were written for webhooks of Alertmanager."""
