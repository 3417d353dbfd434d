"""Comparing profiles of hidden states: pure functions on arrays, the same for live windows, replays, studies.

`sums` turns records into arrays and adds them up, `bank` stacks the profiles of a reference, `distances` has
the statistics, `ranking` finds the nearest place, `rules` says what may be said, `assignment` matches slots.
Needs numpy alone.
"""
