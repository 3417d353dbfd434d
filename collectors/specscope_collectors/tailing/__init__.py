"""Follow files that others write, rotate, truncate and compress: no line twice, none left out.

`Tail` reads whole lines of one followed path, from a `Position` on; it remembers nothing that matters, so a
caller that stores the position with what it made of the lines can be killed at any moment. `Group` does it
for all files that a pattern means.
"""

from __future__ import annotations

from specscope_collectors.tailing.group import Group
from specscope_collectors.tailing.marks import Mark, Position
from specscope_collectors.tailing.readings import Reading, TailState
from specscope_collectors.tailing.tail import Tail

__all__ = ["Group", "Mark", "Position", "Reading", "Tail", "TailState"]
