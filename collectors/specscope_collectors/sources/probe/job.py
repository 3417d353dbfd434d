"""Taking up the state profiles of a probe as a job: ``[[probe]]`` in the collectors' file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.sources.probe import SOURCE
from specscope_collectors.sources.probe.taking import Taking
from specscope_collectors.threads import in_thread


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[probe]]`` table: the folder into which the probe of one server writes state profiles."""

    spool: str
    """What SGLang was given as ``SPECSCOPE_SPOOL``."""
    server: str
    """Name of a target of this file: profiles belong to its launch."""
    interval_seconds: float = 10.0
    """Between two looks."""


def build(config: Config, context: JobContext) -> list[Job]:
    """Return the job. Raises `JobError`."""
    if not config.spool.strip():
        raise JobError("probe: spool is empty; name the folder that SGLang has as SPECSCOPE_SPOOL")
    if not config.server.strip() or not config.server.isprintable():
        raise JobError(f"probe {config.spool}: server = {config.server!r} is no name")
    if not config.interval_seconds > 0:
        raise JobError(f"probe {config.spool}: interval_seconds must be greater than 0")
    return [ProbeJob(config, context)]


class ProbeJob:
    """Looks into the folder again and again."""

    def __init__(self, config: Config, context: JobContext) -> None:
        server = config.server.strip()
        self.name = f"{SOURCE}:{config.spool}"
        self._interval_seconds = config.interval_seconds
        self._pool = context.pool
        self._taking = Taking(
            spool=Path(config.spool).expanduser(),
            server=server,
            context=context,
            collector_id=f"{SOURCE}:{server}:{config.spool}",
        )

    async def step(self) -> float:
        """Store what waits."""
        has_more = await in_thread(self._taking.step, self._pool)
        return 0.0 if has_more else self._interval_seconds

    async def close(self) -> None:
        """Nothing is held open."""
