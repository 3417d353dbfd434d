"""What runs beside the scraping of targets: following a log, asking a Prometheus, a canary.

A source that needs more than ``GET /metrics`` of a watched server is a *job*: its folder under ``sources/``
has a module ``job`` with

* ``Config``, a frozen msgspec struct: one table ``[[<folder name>]]`` of the collectors' file, and
* ``build(config: Config, context: JobContext) -> list[Job]``, which raises `JobError` for what cannot be.

Nothing else has to know of it: `specscope_collectors.jobs` finds it by its folder.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from specscope_collectors.board import Board
from specscope_collectors.clock import Clock, Monotonic
from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import Sink


class JobError(ValueError):
    """A job that cannot be done as configured; the message names the input, the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """What every job is given. Jobs of one process share it."""

    sink: Sink
    options: CollectorOptions
    clock: Clock
    monotonic: Monotonic
    pool: Executor
    """Parse and store here, so that the event loop goes on (``loop.run_in_executor``)."""
    board: Board
    """What the collectors of this process know of the servers they watch."""


class Job(Protocol):
    """One thing that is done again and again."""

    @property
    def name(self) -> str:
        """Unique in the process and stable over restarts, e.g. ``sglang_log:/var/log/sglang.log``."""
        ...

    async def step(self) -> float:
        """Do the next piece of work, store its outcome, and return in how many seconds to be called again.

        What goes wrong at the far side is no exception: it is a `SourceHealth` in the sink. An exception is
        a bug or a sink that cannot store: it is logged once, and the step is tried again after a while, so
        a step remembers nothing that was not stored.
        """
        ...

    async def close(self) -> None:
        """Release files and connections; called once, also after a cancelled step."""
        ...
