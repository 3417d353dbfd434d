"""Targets of a collector that pushes: loopback is the same address on every host, so names must differ."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from specscope_collectors.config import parse_target, parse_targets
from specscope_collectors.observations import Target

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def targets_here(texts: Sequence[str], host: str) -> list[Target]:
    """Return what `parse_targets` does, loopback addresses without a name of their own under the host's.

    Raises `TargetError`.
    """
    targets = parse_targets(texts)
    return [named_here(target, host) for target in targets]


def named_here(target: Target, host: str | None) -> Target:
    """Return the target, under the host's name if it is on loopback and has no name of its own."""
    if host is None:
        return target
    parts = urlsplit(target.base_url)
    if parts.hostname not in LOOPBACK or target.name != parse_target(target.base_url).name:
        return target
    shown = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
    return msgspec.structs.replace(target, name=host + target.name.removeprefix(shown))
