"""Boundaries: every layer id in play, as the boundary it means, and where two of them disagree."""
