"""A finished vLLM log → launches, counts of drafts over each print interval, and the load that it prints.

`lines` reads single lines, `cycles` finds the number of cycles behind the printed figures where they leave
only one, `counting` makes counts over intervals of both, `launch` reads what the engine says at its start,
and `reading` goes through the whole log.
"""

from __future__ import annotations

SOURCE = "vllm_log"
