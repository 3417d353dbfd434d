"""PagerDuty, by Events API v2."""
