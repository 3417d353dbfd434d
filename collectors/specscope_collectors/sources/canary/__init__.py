"""A canary: the same few prompts again and again, so that a trend is made of the same work every time.

Users' traffic changes by the hour, and acceptance with it. A canary asks a fixed set of prompts (greedy,
fixed length) and records how many drafts were accepted, how long it took, and a hash of the output. Runs are
compared prompt by prompt: a draft that reads states one layer off loses 3 to 5 % of its accept length, which
pairs show and an unpaired mean over 30 prompts does not.
"""

from __future__ import annotations

SOURCE = "canary"
