"""Following the request files that SGLang exports as a job: ``[[requests]]`` in the collectors' file."""

from __future__ import annotations

import asyncio
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.sources.requests.following import SOURCE, Following


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[requests]]`` table: the directory into which one server exports."""

    directory: str
    """What SGLang was given as ``--export-metrics-to-file-dir``."""
    server: str
    """Name under which the server is shown: that of the target if its metrics are scraped, too."""
    timezone: str = "UTC"
    """Zone of the hours in the files' names, for requests that do not say when they finished."""
    from_beginning: bool = False
    """Also read the files that are there when the directory is first seen."""
    interval_seconds: float = 2.0
    """Between two looks."""


def build(config: Config, context: JobContext) -> list[Job]:
    """Return the job. Raises `JobError`."""
    if not config.directory.strip():
        raise JobError("requests: directory is empty; name the one that SGLang exports into")
    if not config.server.strip() or not config.server.isprintable():
        raise JobError(f"requests {config.directory}: server = {config.server!r} is no name")
    if not config.interval_seconds > 0:
        raise JobError(f"requests {config.directory}: interval_seconds must be greater than 0")
    return [FollowJob(config, _zone(config), context)]


class FollowJob:
    """Looks into the directory again and again."""

    def __init__(self, config: Config, zone: tzinfo, context: JobContext) -> None:
        self.name = f"{SOURCE}:{config.directory}"
        self._interval_seconds = config.interval_seconds
        self._pool = context.pool
        self._following = Following(
            directory=Path(config.directory).expanduser(),
            server=config.server.strip(),
            zone=zone,
            from_beginning=config.from_beginning,
            context=context,
            collector_id=f"{SOURCE}:{config.server.strip()}:{config.directory}",
        )

    async def step(self) -> float:
        """Read what has come and store it."""
        has_more = await asyncio.get_running_loop().run_in_executor(self._pool, self._following.step)
        return 0.0 if has_more else self._interval_seconds

    async def close(self) -> None:
        """Close the files."""
        self._following.close()


def _zone(config: Config) -> tzinfo:
    if config.timezone.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(config.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise JobError(
            f"requests {config.directory}: timezone = {config.timezone!r}: there is no such zone here; write "
            "it like Europe/Berlin or UTC"
        ) from None
