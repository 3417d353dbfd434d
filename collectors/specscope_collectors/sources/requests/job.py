"""Following the request files that SGLang exports as a job: ``[[requests]]`` in the collectors' file."""

from __future__ import annotations

import math
from datetime import tzinfo
from pathlib import Path

import msgspec

from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.sources.requests.following import SOURCE, Following
from specscope_collectors.tailing.job import FollowJob
from specscope_collectors.zones import zone_named


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
    if not 0 < config.interval_seconds < math.inf:
        raise JobError(f"requests {config.directory}: interval_seconds must be greater than 0, and finite")
    return [_follow_job(config, _zone(config), context)]


def _follow_job(config: Config, zone: tzinfo, context: JobContext) -> Job:
    following = Following(
        directory=Path(config.directory).expanduser(),
        server=config.server.strip(),
        zone=zone,
        from_beginning=config.from_beginning,
        context=context,
        collector_id=f"{SOURCE}:{config.server.strip()}:{config.directory}",
    )
    return FollowJob(f"{SOURCE}:{config.directory}", following, config.interval_seconds, context.pool)


def _zone(config: Config) -> tzinfo:
    try:
        return zone_named(config.timezone)
    except ValueError as error:
        raise JobError(f"requests {config.directory}: timezone = {config.timezone!r}: {error}") from None
