"""Where the time goes: each phase of a cycle, by rank and batch size, and what a millisecond is worth."""
