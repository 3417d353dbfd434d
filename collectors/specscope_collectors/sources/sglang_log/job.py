"""Following a log as a job: ``[[sglang_log]]`` in the collectors' file."""

from __future__ import annotations

import math
import os
from datetime import date, tzinfo

import msgspec

from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.sources.sglang_log import SOURCE
from specscope_collectors.sources.sglang_log.following import Following, Told
from specscope_collectors.tailing.job import FollowJob
from specscope_collectors.zones import zone_named


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[sglang_log]]`` table: a log, or the logs of all nodes, of one server."""

    path: str
    """The file, or a pattern like ``/var/log/sglang/node*.log`` for the files of one server's nodes."""
    server: str
    """Name under which the server is shown: that of the target if its metrics are scraped, too."""
    timezone: str = "UTC"
    """Zone of stamps that have none, e.g. ``Europe/Berlin``."""
    from_beginning: bool = False
    """Also read what is in the file when it is first seen; else only what is written from then on."""
    service: str | None = None
    """Of a log that Docker Compose wrote for several services: the one to read."""
    date: str | None = None
    """Day (YYYY-MM-DD) of the first line, for stamps without a date; by default today."""
    year: int | None = None
    """Year of the first line, for stamps without one; by default this year."""
    interval_seconds: float = 1.0
    """Between two looks at the file."""


def build(config: Config, context: JobContext) -> list[Job]:
    """Return the job. Raises `JobError`."""
    if not config.path.strip():
        raise JobError("sglang_log: path is empty; name the file that SGLang's output goes to")
    if not config.server.strip() or not config.server.isprintable():
        raise JobError(f"sglang_log {config.path}: server = {config.server!r} is no name; name the server")
    if not 0 < config.interval_seconds < math.inf:
        raise JobError(f"sglang_log {config.path}: interval_seconds must be greater than 0, and finite")
    config = msgspec.structs.replace(config, path=os.path.normpath(config.path))  # one file, one name
    told = Told(zone=_zone(config), day=_day(config), year=config.year)
    return [_follow_job(config, told, context)]


def _follow_job(config: Config, told: Told, context: JobContext) -> Job:
    chosen = f"#{config.service}" if config.service else ""
    following = Following(
        path=config.path,
        server=config.server.strip(),
        service=config.service,
        from_beginning=config.from_beginning,
        told=told,
        context=context,
        collector_id=f"{SOURCE}:{config.server.strip()}:{config.path}{chosen}",
    )
    return FollowJob(f"{SOURCE}:{config.path}{chosen}", following, config.interval_seconds, context.pool)


def _zone(config: Config) -> tzinfo:
    try:
        return zone_named(config.timezone)
    except ValueError as error:
        raise JobError(f"sglang_log {config.path}: timezone = {config.timezone!r}: {error}") from None


def _day(config: Config) -> date | None:
    try:
        return None if config.date is None else date.fromisoformat(config.date)
    except ValueError:
        raise JobError(f"sglang_log {config.path}: date = {config.date!r}: write YYYY-MM-DD") from None
