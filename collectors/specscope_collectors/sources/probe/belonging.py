"""Whether a file tells of the launch that is being watched, or of an earlier start of the engine."""

from __future__ import annotations

from enum import Enum, auto

from specscope_collectors.observations import Launch
from specscope_collectors.sources.probe.reading import StateFile

SMALLEST_DRAWN = 100_000
"""Smaller seeds are chosen by people, who choose the same one again."""
PATIENCE_MS = 600_000


class Belonging(Enum):
    """What to do with a file."""

    TAKE = auto()
    WAIT = auto()
    """The scrape has not noticed the new start yet."""
    REFUSE = auto()


def belonging(file: StateFile, launch: Launch, now_ms: int) -> Belonging:
    """Compare the seeds that engines draw at their start; where they are not known, the file is taken."""
    seed = launch.config.get("random_seed")
    seeds = (file.random_seed, seed)
    if (
        not all(isinstance(each, int) and each >= SMALLEST_DRAWN for each in seeds)
        or seed == file.random_seed
    ):
        return Belonging.TAKE
    is_newer = file.created_ms >= launch.time_ms
    return Belonging.WAIT if is_newer and now_ms - file.created_ms < PATIENCE_MS else Belonging.REFUSE
