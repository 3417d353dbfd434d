"""Launches in a few words, as answers about time name them."""

from __future__ import annotations

from specscope_server.acceptance.schemas import LaunchMarker
from specscope_server.kit.engines import engine_title
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.versions import version_text
from specscope_server.models import Launch
from specscope_server.timing.measure import is_plain
from specscope_server.timing.schemas import TimedLaunch


def timed_launch(launch: Launch) -> TimedLaunch:
    """Return a launch in a few words; names are untrusted."""
    version = version_text(launch.engine_version, launch.version_source)
    parts = [f"{engine_title(launch.engine)} {version or 'of unknown version'}", _speculation(launch)]
    return TimedLaunch(
        id=launch.id,
        words=" · ".join(parts),
        first_seen=to_iso(launch.first_seen_ms),
        last_seen=to_iso(launch.last_seen_ms),
        num_steps=launch.num_steps,
        num_draft_tokens=launch.num_draft_tokens,
        is_plain=is_plain(launch),
    )


def marker(launch: Launch) -> LaunchMarker:
    """Return the launch as a mark on a time axis."""
    version = version_text(launch.engine_version, launch.version_source)
    label = " · ".join(filter(None, (_depth(launch), version)))
    return LaunchMarker(
        time=to_iso(launch.first_seen_ms), launch_id=launch.id, label=label, reason=launch.reason
    )


def _depth(launch: Launch) -> str:
    if launch.num_draft_tokens:
        return f"K={launch.num_steps} D={launch.num_draft_tokens}"
    return "off" if is_plain(launch) else "launch"


def _speculation(launch: Launch) -> str:
    if is_plain(launch):
        return "no speculation"
    return f"{launch.algorithm or 'speculation not said'} {_depth(launch)}".strip()
