"""The tables ``[options]`` and ``[[target]]`` of the collectors' file."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import msgspec

from specscope_collectors.access import Access, apply_access
from specscope_collectors.config import AskedBy, CollectorOptions, OptionsError, TargetError, parse_target
from specscope_collectors.observations import Target as Watched
from specscope_collectors.plan import Watching
from specscope_collectors.watching import named_here

MAX_NAME = 200
KEY_REMEDY = "give api_key_env or api_key_file instead"
ACCESS = frozenset(Access.__struct_fields__)


class Options(Access, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How servers are read, unless their own table says otherwise."""

    scrape_interval_seconds: float | None = None
    """Between two reads of `/metrics`."""
    scrape_timeout_seconds: float | None = None
    """Total time one answer may take, from connecting to the last byte."""
    info_interval_seconds: float | None = None
    """Between two reads of `/server_info`, which makes a round trip through every scheduler."""
    loads_interval_seconds: float | None = None
    """Between two reads of `/v1/loads`."""
    max_body_bytes: int | None = None
    """Of one answer, after decompression."""
    max_series_per_target: int | None = None
    """Series kept of one server; more are refused and counted."""
    concurrency: int | None = None
    """Servers that are read at the same time."""
    jitter_share: float | None = None
    """First reads are spread over this share of the interval, so that servers are not hit in one burst."""


class Target(Access, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server to watch."""

    url: str
    """`HOST:PORT` or base URL, without credentials."""
    name: str | None = None
    """What it is called everywhere; by default host and port. Keep it: a new name is a new server."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Kept with each launch of this server, e.g. `{ rack = "r7" }`."""


DEFAULTS = {field.name: field.default for field in fields(CollectorOptions)}
"""What holds where neither the file nor a setting says otherwise."""


def options_of(table: Options, base: CollectorOptions, where: str, problems: list[str]) -> CollectorOptions:
    """Return ``base`` with what the table says; what cannot be is appended to ``problems``."""
    given: dict[str, Any] = {
        name: value
        for name, value in msgspec.structs.asdict(table).items()
        if name not in ACCESS and value is not None
    }
    try:
        base = replace(base, **given)
    except OptionsError as error:
        problems.append(f"{where}: {error}")
    return apply_access(table, base, where, problems)


def watching_of(table: Target, options: CollectorOptions, where: str, problems: list[str]) -> Watching | None:
    """Return the server that the table names; None with a problem."""
    read_as = apply_access(table, options, where, problems)
    try:
        target = parse_target(table.url, AskedBy(f"{where}: url =", KEY_REMEDY))
    except TargetError as error:
        problems.append(str(error))
        return None
    target = named_here(target, options.loopback_name)
    if table.name is not None:
        name = table.name.strip()
        if not name or len(name) > MAX_NAME or not name.isprintable():
            problems.append(f"{where}: name is empty, too long or not printable; give a short name")
            return None
        target = Watched(name=name, base_url=target.base_url)
    return Watching(
        target=target, options=read_as, labels=dict(table.labels), origin=where.partition(": [[")[0]
    )
